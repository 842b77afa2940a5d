// SPDX-License-Identifier: Apache-2.0
//
// digits_cpp - tunes a small network on handwritten digits: 64 trials, each a function of this
// program.
//
//     digits_cpp                                                     on this machine
//     mpirun -n 3 --oversubscribe digits_cpp --rank-is-node          on three nodes, pretended
//     muster launch --program digits_cpp --hosts n1,n2,n3            on three nodes
//
// Options of its own: --samples N (64), --epochs N (30). Those of `muster run` work as well:
// --node-resources, --fresh, --until, …

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <muster/muster.hpp>

#include "network.hpp"

namespace {

/// Made before the session, so that every trial finds the digits in its memory at no cost.
struct Data {
    std::vector<Digit> digits;
    std::vector<const Digit*> train;
    std::vector<const Digit*> test;
};

Data load_data() {
    Data data{read_digits(DIGITS_FILE), {}, {}};
    for (std::size_t index = 0; index < data.digits.size(); ++index) {
        (index % 4 == 3 ? data.test : data.train).push_back(&data.digits[index]);
    }
    return data;
}

void train(muster::TrialContext& trial, const Data& data) {
    Network network(
        {.hidden = trial.get<std::size_t>("hidden"),
         .learning_rate = trial.get<float>("lr"),
         .momentum = trial.get<float>("momentum"),
         .decay = trial.get<float>("decay")},
        trial.seed()
    );
    int epoch = 0;
    if (!trial.resume_dir().empty()) {
        std::ifstream saved(trial.resume_dir() + "/network");
        saved >> epoch;
        if (!network.load(saved)) {
            throw std::runtime_error(trial.resume_dir() + "/network: of another size");
        }
    }
    const int epochs = trial.get<int>("epochs");
    while (epoch < epochs && !trial.should_stop()) {
        ++epoch;
        const double loss = network.train_epoch(data.train, trial.get<std::size_t>("batch"));
        trial.report(epoch, {{"loss", loss}, {"accuracy", network.accuracy(data.test)}});
        if (trial.should_checkpoint()) {
            const std::string directory = trial.dir() + "/saving";
            std::filesystem::create_directories(directory);
            std::ofstream out(directory + "/network");
            out << epoch << '\n';
            network.save(out);
            out.close();
            trial.checkpoint(directory);
        }
    }
}

/// Takes "--name N" out of the arguments.
int option(int& argc, char** argv, const std::string& name, int fallback) {
    for (int at = 1; at + 1 < argc; ++at) {
        if (name == argv[at]) {
            const int value = std::atoi(argv[at + 1]);
            std::copy(argv + at + 2, argv + argc + 1, argv + at);
            argc -= 2;
            return value;
        }
    }
    return fallback;
}

int tune(int argc, char** argv) {
    const Data data = load_data();
    const int samples = option(argc, argv, "--samples", 64);
    const int epochs = option(argc, argv, "--epochs", 30);
    muster::Session session{
        argc, argv, {{"digits", [&data](muster::TrialContext& trial) { train(trial, data); }}}};
    if (argc > 1) {
        std::fprintf(stderr, "digits_cpp: '%s' is no option; see digits_cpp.cpp\n", argv[1]);
        return 2;
    }

    namespace space = muster::space;
    muster::ExperimentSpec spec;
    spec.name = "digits_cpp";
    spec.objective = muster::ObjectiveSpec{"accuracy", muster::Mode::Max};
    spec.num_samples = samples;
    spec.seed = 7;
    spec.trial.function = "digits";
    spec.space = {
        {space::loguniform("lr", 1e-3, 1),
         space::uniform("momentum", 0, 0.99),
         space::loguniform("decay", 1e-6, 1e-3),
         space::choice("hidden", {16, 32, 64, 128}),
         space::choice("batch", {8, 16, 32, 64}),
         space::constant("epochs", epochs)}};
    muster::Tuner tuner{session, std::move(spec)};
    tuner.with_resources(muster::ResourceRequest{.cpu = 1});

    const muster::ResultGrid results = muster::or_exit(tuner.fit());
    if (const muster::TrialRecord* best = results.best()) {
        std::printf(
            "best of %zu: trial %s, accuracy %.4f with %s\n",
            results.size(),
            best->id.c_str(),
            results.value_of(*best).value_or(0),
            muster::to_text(best->config).c_str()
        );
    }
    return results.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return tune(argc, argv);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "digits_cpp: %s\n", problem.what());
        return 2;
    }
}
