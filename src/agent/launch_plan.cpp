// SPDX-License-Identifier: Apache-2.0

#include "agent/launch_plan.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "muster/config.hpp"
#include "muster/value.hpp"

#include "base/ids.hpp"
#include "base/random.hpp"
#include "model/placeholder.hpp"

namespace muster {
namespace {

/// Everything that the parts of a plan are made from.
struct Context {
    const Setup& setup;
    const Start& start;
    const NodeInventory& inventory;
    const AgentOptions& options;
    std::string trial_dir;
    std::string workdir;
    PlaceholderValues values;
};

/// Threads that the member should use: its whole cores; without booked CPUs those it may run on.
std::int64_t thread_count(const Start& start) {
    const std::int64_t booked = start.cpu.floor();
    const bool shares_cores = start.cpu.is_zero() && !start.gpu.is_zero();
    const auto given = static_cast<std::int64_t>(start.cores.size());
    return std::max<std::int64_t>(1, shares_cores ? given : booked);
}

/// Tells apart the directories of experiments that have one name. FNV-1a.
std::uint32_t fnv1a(std::string_view text) {
    std::uint32_t hash = 2'166'136'261U;
    for (const char byte : text) {
        hash = (hash ^ static_cast<unsigned char>(byte)) * 16'777'619U;
    }
    return hash;
}

Context make_context(
    const Setup& setup,
    const Start& start,
    const NodeInventory& inventory,
    const AgentOptions& options
) {
    const std::string trial = to_string(start.key.trial);
    std::string trial_dir = setup.experiment_dir + "/" + trial;
    const std::string workdir =
        setup.trial->workdir_is_trial_dir ? trial_dir : setup.trial->workdir;
    const std::string checkpoints = checkpoint_dir(setup, inventory, start.key.trial, options);
    PlaceholderValues values{
        .config = &start.config,
        .trial_id = trial,
        .trial_dir = trial_dir,
        .checkpoint =
            start.resume_from ? checkpoints + "/" + checkpoint_name(*start.resume_from) : "",
        .cores = start.cpu.is_zero() ? std::to_string(thread_count(start)) : to_string(start.cpu),
        .gpus = to_string(start.gpu),
    };
    return {setup, start, inventory, options, std::move(trial_dir), workdir, std::move(values)};
}

Error in_place(std::string_view place, const Error& error) {
    return {error.code, fmt::format("{}: {}", place, error.message)};
}

Result<std::vector<std::string>> fill_command(const Context& context) {
    const TrialSpec& spec = *context.setup.trial;
    if (!spec.shell.empty()) {
        auto line = expand(spec.shell, context.values, Quoting::Shell);
        if (!line) {
            return in_place("trial.shell", line.error());
        }
        return std::vector<std::string>{"/bin/sh", "-c", std::move(line).value()};
    }
    std::vector<std::string> argv;
    if (!spec.function.empty()) {
        return argv;
    }
    argv.reserve(spec.command.size());
    for (std::size_t i = 0; i < spec.command.size(); ++i) {
        auto word = expand(spec.command[i], context.values);
        if (!word) {
            return in_place(fmt::format("trial.command[{}]", i), word.error());
        }
        argv.push_back(std::move(word).value());
    }
    if (argv.empty() || argv.front().empty()) {
        return Error{ErrorCode::InvalidInput, "trial.command: there is no program to run"};
    }
    return argv;
}

std::string bundles_json(const std::vector<BundleView>& bundles) {
    Value::List list;
    for (const BundleView& bundle : bundles) {
        Value::List cores;
        for (const std::uint32_t core : bundle.cores) {
            cores.emplace_back(std::int64_t{core});
        }
        list.emplace_back(Value::Map{
            {"host", bundle.host},
            {"cores", std::move(cores)},
            {"devices", Value::List(bundle.devices.begin(), bundle.devices.end())},
        });
    }
    return to_json(Value(std::move(list)));
}

/// The variables that hide every device but the member's.
Result<std::vector<EnvironmentVariable>> device_mask(const Context& context) {
    const std::vector<Device>& devices = context.inventory.devices;
    std::string mask;
    for (const std::uint32_t index : context.start.devices) {
        if (index >= devices.size()) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "device {} was given, but node {} has {}",
                    index,
                    context.inventory.name,
                    devices.size()
                )};
        }
        mask += (mask.empty() ? "" : ",") + devices[index].label;
    }
    const bool rocm = std::any_of(devices.begin(), devices.end(), [](const Device& device) {
        return device.kind == DeviceKind::Rocm;
    });
    if (rocm) {
        return std::vector<EnvironmentVariable>{{"ROCR_VISIBLE_DEVICES", mask}};
    }
    return std::vector<EnvironmentVariable>{
        {"CUDA_VISIBLE_DEVICES", mask},
        {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
    };
}

/// Sets `variable`, in place of one with the same name.
void set(std::vector<EnvironmentVariable>& env, EnvironmentVariable variable) {
    const auto same = std::find_if(env.begin(), env.end(), [&](const EnvironmentVariable& other) {
        return other.name == variable.name;
    });
    if (same != env.end()) {
        *same = std::move(variable);
    } else {
        env.push_back(std::move(variable));
    }
}

Result<std::vector<EnvironmentVariable>>
make_env(const Context& context, const std::string& params_path) {
    const Start& start = context.start;
    std::vector<EnvironmentVariable> env{
        {"MUSTER_TRIAL_ID", context.values.trial_id},
        {"MUSTER_ATTEMPT", to_string(start.key.attempt)},
        {"MUSTER_EXPERIMENT", context.setup.experiment},
    };
    if (context.setup.trial->trial_dir != TrialDir::Never) {
        env.push_back({"MUSTER_TRIAL_DIR", context.trial_dir});
    }
    env.push_back({"MUSTER_CONFIG", params_path});
    env.push_back({"MUSTER_SOCKET", context.options.socket_path});
    env.push_back(
        {"MUSTER_CHECKPOINT_DIR",
         checkpoint_dir(context.setup, context.inventory, start.key.trial, context.options)}
    );
    if (!context.values.checkpoint.empty()) {
        env.push_back({"MUSTER_CHECKPOINT", context.values.checkpoint});
    }
    env.push_back({"MUSTER_BUNDLES", bundles_json(start.bundles)});
    auto mask = device_mask(context);
    if (!mask) {
        return mask.error();
    }
    env.insert(env.end(), mask->begin(), mask->end());
    env.push_back({"OMP_NUM_THREADS", std::to_string(thread_count(start))});
    RandomStream seeds = RandomStream::derive(context.setup.seed, "trial", start.key.trial.value);
    env.push_back({"MUSTER_SEED", std::to_string(seeds())});
    for (const EnvironmentVariable& variable : context.setup.trial->env) {
        auto value = expand(variable.value, context.values);
        if (!value) {
            return in_place("trial.env." + variable.name, value.error());
        }
        set(env, {variable.name, std::move(value).value()});
    }
    return env;
}

Result<std::vector<FileToWrite>>
make_files(const Context& context, const std::string& params_path) {
    std::vector<FileToWrite> files;
    files.push_back({params_path, to_json(context.start.config) + "\n"});
    for (const TemplateFile& file : context.setup.trial->files) {
        auto content = expand(file.content, context.values);
        if (!content) {
            return in_place(file.source, content.error());
        }
        files.push_back({context.trial_dir + "/" + file.target, std::move(content).value()});
    }
    return files;
}

Result<std::vector<MetricPattern>> make_metrics(const Context& context) {
    std::vector<MetricPattern> metrics = context.setup.trial->metrics;
    for (MetricPattern& metric : metrics) {
        if (metric.from != MetricSource::File) {
            continue;
        }
        auto path = expand(metric.path, context.values);
        if (!path) {
            return in_place("trial.metrics.path", path.error());
        }
        const bool absolute = !path->empty() && path->front() == '/';
        metric.path = absolute ? *path : context.workdir + "/" + *path;
    }
    return metrics;
}

/// Whether something of the spec expects the trial's directory to be there, by name.
bool names_trial_dir(const TrialSpec& spec) {
    const auto names = [](const std::string& text) {
        return mentions(text, "muster.trial_dir") ||
               text.find("MUSTER_TRIAL_DIR") != std::string::npos;
    };
    return names(spec.shell) || std::any_of(spec.command.begin(), spec.command.end(), names) ||
           std::any_of(
               spec.env.begin(),
               spec.env.end(),
               [&](const EnvironmentVariable& variable) { return names(variable.value); }
           ) ||
           std::any_of(
               spec.files.begin(),
               spec.files.end(),
               [&](const TemplateFile& file) { return names(file.content); }
           ) ||
           std::any_of(spec.metrics.begin(), spec.metrics.end(), [&](const MetricPattern& metric) {
               return names(metric.path);
           });
}

/// What makes `trial_dir: never` impossible; nullptr when nothing does.
const char* need_of_trial_dir(const TrialSpec& spec) {
    if (spec.workdir_is_trial_dir) {
        return "workdir: trial";
    }
    if (!spec.files.empty()) {
        return "files";
    }
    if (spec.output == OutputMode::File || spec.output == OutputMode::Pty) {
        return "output: file (or pty)";
    }
    return names_trial_dir(spec) ? "{muster.trial_dir}" : nullptr;
}

Result<bool> must_make_trial_dir(const TrialSpec& spec) {
    switch (spec.trial_dir) {
        case TrialDir::Auto:
            return spec.workdir_is_trial_dir || names_trial_dir(spec);
        case TrialDir::Always:
            return true;
        case TrialDir::Never:
            break;
    }
    if (const char* need = need_of_trial_dir(spec)) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("trial.trial_dir: never, but {} needs the trial's directory", need)};
    }
    return false;
}

std::string output_path(const Context& context) {
    switch (context.setup.trial->output) {
        case OutputMode::File:
        case OutputMode::Pty:
            return context.trial_dir + "/output";
        case OutputMode::Stream:
            return context.setup.experiment_dir + "/output-" + context.inventory.name;
        case OutputMode::Discard:
            break;
    }
    return "";
}

}  // namespace

Result<std::vector<std::uint32_t>>
processing_units_of(const NodeInventory& inventory, const std::vector<std::uint32_t>& cores) {
    std::vector<std::uint32_t> units;
    for (const std::uint32_t index : cores) {
        if (index >= inventory.cores.size()) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "core {} was given, but node {} has {}",
                    index,
                    inventory.name,
                    inventory.cores.size()
                )};
        }
        const std::vector<std::uint32_t>& more = inventory.cores[index].processing_units;
        units.insert(units.end(), more.begin(), more.end());
    }
    return units;
}

std::string checkpoint_dir(
    const Setup& setup,
    const NodeInventory& inventory,
    TrialId trial,
    const AgentOptions& options
) {
    if (setup.checkpoint_storage == CheckpointStorage::Shared) {
        return fmt::format("{}/{}/checkpoints", setup.experiment_dir, to_string(trial));
    }
    return checkpoint_root(setup, inventory, options) + "/" + to_string(trial);
}

std::string
checkpoint_root(const Setup& setup, const NodeInventory& inventory, const AgentOptions& options) {
    return fmt::format(
        "{}/muster-{}/{}-{:08x}/{}",
        setup.checkpoint_path.empty() ? options.scratch_dir : setup.checkpoint_path,
        options.user,
        setup.experiment,
        fnv1a(setup.experiment_dir),
        inventory.name
    );
}

Result<LaunchPlan> make_launch_plan(
    const Setup& setup,
    const Start& start,
    const NodeInventory& inventory,
    const AgentOptions& options
) {
    const Context context = make_context(setup, start, inventory, options);
    const std::string params_path = fmt::format(
        "{}/{}-{}-{}.json",
        options.run_dir,
        to_string(start.key.trial),
        to_string(start.key.attempt),
        start.key.member.value
    );
    auto make_dir = must_make_trial_dir(*setup.trial);
    if (!make_dir) {
        return make_dir.error();
    }
    auto argv = fill_command(context);
    if (!argv) {
        return argv.error();
    }
    auto env = make_env(context, params_path);
    if (!env) {
        return env.error();
    }
    auto files = make_files(context, params_path);
    if (!files) {
        return files.error();
    }
    auto metrics = make_metrics(context);
    if (!metrics) {
        return metrics.error();
    }
    auto units = processing_units_of(inventory, start.cores);
    if (!units) {
        return units.error();
    }
    return LaunchPlan{
        .key = start.key,
        .argv = std::move(argv).value(),
        .function = setup.trial->function,
        .env = std::move(env).value(),
        .workdir = context.workdir,
        .files = std::move(files).value(),
        .remove_at_end = params_path,
        .trial_dir = context.trial_dir,
        .make_trial_dir = *make_dir,
        .output = setup.trial->output,
        .output_path = output_path(context),
        .processing_units = std::move(units).value(),
        .memory_limit_bytes = start.memory_limit_bytes,
        .grace = setup.trial->grace,
        .metrics = std::move(metrics).value(),
        .checkpoints =
            {.directory = checkpoint_dir(setup, inventory, start.key.trial, options),
             .kept = start.kept_checkpoints,
             .resume_from = start.resume_from,
             .fetch_from = start.fetch_from,
             .next = start.next_checkpoint},
    };
}

}  // namespace muster
