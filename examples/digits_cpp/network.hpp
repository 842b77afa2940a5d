// SPDX-License-Identifier: Apache-2.0
//
// network - digits, and a network with one hidden layer that learns them by stochastic gradient
// descent with momentum.

#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <random>
#include <string>
#include <vector>

constexpr std::size_t kPixels = 64;
constexpr std::size_t kClasses = 10;

struct Digit {
    /// From 0 to 1, row by row.
    std::vector<float> pixels;
    std::size_t label = 0;
};

/// Throws std::runtime_error, naming the line, when the file is not there or is no list of digits.
std::vector<Digit> read_digits(const std::string& path);

struct NetworkOptions {
    std::size_t hidden = 64;
    float learning_rate = 0.1F;
    float momentum = 0.9F;
    /// Of the weights, added to the gradient.
    float decay = 0;
};

class Network {
  public:
    Network(NetworkOptions options, std::uint64_t seed);

    /// One pass over `digits` in batches, in an order of its own. Returns the mean loss (natural
    /// logarithm).
    double train_epoch(const std::vector<const Digit*>& digits, std::size_t batch);

    /// The share of `digits` that it tells right.
    double accuracy(const std::vector<const Digit*>& digits) const;

    /// Everything that learning goes on from.
    void save(std::ostream& out) const;
    /// Whether `in` held a network of this size.
    bool load(std::istream& in);

  private:
    struct Layer {
        Layer(std::size_t in, std::size_t out, std::mt19937_64& random);

        std::size_t in;
        std::size_t out;
        /// Row by row, one for each output; the biases come last.
        std::vector<float> weights;
        std::vector<float> gradient;
        std::vector<float> velocity;

        void forward(const float* from, std::vector<float>& to) const;
        /// Adds to the gradient; `to_in`, when it is there, gets the error of the inputs.
        void backward(const float* from, const std::vector<float>& error, float* to_in);
        void step(const NetworkOptions& options, float share);
    };

    void think(const Digit& digit, std::vector<float>& hidden, std::vector<float>& output) const;

    NetworkOptions options_;
    std::mt19937_64 random_;
    Layer first_;
    Layer second_;
};
