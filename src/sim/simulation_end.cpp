// SPDX-License-Identifier: Apache-2.0
//
// simulation_end - the time of a run as it is told and as it ends, with the head and every node.

#include "sim/simulation_state.hpp"

namespace muster {

void Simulation::State::plan_end() {
    end_told = kNever;
    if (!scenario.end) {
        return;
    }
    const EndPlan& plan = *scenario.end;
    whole = draw(plan.length);
    const TimePoint end = now + whole;
    const TimePoint told = now + draw(plan.told_after);
    if (plan.changes) {
        const TimePoint wrong = now + draw(whole / 2, whole * 3 / 2);
        push(told, EndIsTold{run_number, wrong});
        push(told + draw(Duration{0}, whole / 2), EndIsTold{run_number, end});
    } else {
        push(told, EndIsTold{run_number, end});
    }
    if (plan.is_withdrawn) {
        const TimePoint taken_back = now + draw(whole / 2, whole);
        push(taken_back, EndIsTold{run_number, kNever});
        push(taken_back + draw(Duration{0}, whole / 4), EndIsTold{run_number, end});
    }
    push(end, TimeIsUp{run_number});
}

void Simulation::State::on(EndIsTold& event) {
    if (!is_run(event.run)) {
        return;
    }
    end_told = event.at;
    const TimePoint at = event.at == kNever ? kNever : event.at - head_stood;
    step(EndKnown{at, whole, "the job's time limit"});
}

void Simulation::State::on(TimeIsUp& event) {
    if (!is_run(event.run)) {
        return;
    }
    ++result.ran_into_end;
    for (NodeSide& which : places) {
        if (which.node.is_up()) {
            which.node.lose();
            which.was_up = false;
            which.still_until = now;
        }
    }
    end_head_stall();
    watch.check_facts(side->head, restored_head());
    replace_head();
}

}  // namespace muster
