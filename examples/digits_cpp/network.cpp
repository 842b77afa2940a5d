// SPDX-License-Identifier: Apache-2.0

#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <stdexcept>

std::vector<Digit> read_digits(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error(path + ": not there, or not to be read");
    }
    const std::string values = "0123456789abcdefg";
    std::vector<Digit> digits;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        const bool is_digit =
            line.size() == kPixels + 2 && line.back() >= '0' && line.back() <= '9';
        if (!is_digit || line.find_first_not_of(values) != kPixels) {
            throw std::runtime_error(path + ":" + std::to_string(number) + ": no digit");
        }
        Digit digit;
        for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
            digit.pixels.push_back(static_cast<float>(values.find(line[pixel])) / 16.0F);
        }
        digit.label = static_cast<std::size_t>(line.back() - '0');
        digits.push_back(std::move(digit));
    }
    return digits;
}

Network::Layer::Layer(std::size_t inputs, std::size_t outputs, std::mt19937_64& random)
    : in(inputs),
      out(outputs),
      weights((inputs + 1) * outputs),
      gradient(weights.size()),
      velocity(weights.size()) {
    // He et al., 2015: a variance of 2 / inputs keeps the size of what passes through.
    std::normal_distribution<float> draw(0, std::sqrt(2.0F / static_cast<float>(inputs)));
    std::generate_n(weights.begin(), inputs * outputs, [&] { return draw(random); });
}

void Network::Layer::forward(const float* from, std::vector<float>& to) const {
    for (std::size_t row = 0; row < out; ++row) {
        const float* weight = &weights[row * in];
        to[row] = std::inner_product(from, from + in, weight, weights[in * out + row]);
    }
}

void Network::Layer::backward(const float* from, const std::vector<float>& error, float* to_in) {
    for (std::size_t row = 0; row < out; ++row) {
        float* sum = &gradient[row * in];
        for (std::size_t column = 0; column < in; ++column) {
            sum[column] += error[row] * from[column];
        }
        gradient[in * out + row] += error[row];
        for (std::size_t column = 0; to_in != nullptr && column < in; ++column) {
            to_in[column] += error[row] * weights[row * in + column];
        }
    }
}

void Network::Layer::step(const NetworkOptions& options, float share) {
    for (std::size_t index = 0; index < weights.size(); ++index) {
        const float slope = gradient[index] * share + options.decay * weights[index];
        velocity[index] = options.momentum * velocity[index] - options.learning_rate * slope;
        weights[index] += velocity[index];
        gradient[index] = 0;
    }
}

Network::Network(NetworkOptions options, std::uint64_t seed)
    : options_(options),
      random_(seed),
      first_(kPixels, options.hidden, random_),
      second_(options.hidden, kClasses, random_) {}

/// Afterwards `output` holds a probability for each class.
void Network::think(const Digit& digit, std::vector<float>& hidden, std::vector<float>& output)
    const {
    first_.forward(digit.pixels.data(), hidden);
    for (float& value : hidden) {
        value = std::max(value, 0.0F);
    }
    second_.forward(hidden.data(), output);
    const float most = *std::max_element(output.begin(), output.end());
    float sum = 0;
    for (float& value : output) {
        value = std::exp(value - most);
        sum += value;
    }
    for (float& value : output) {
        value /= sum;
    }
}

double Network::train_epoch(const std::vector<const Digit*>& digits, std::size_t batch) {
    std::vector<const Digit*> order = digits;
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<float> hidden(options_.hidden);
    std::vector<float> output(kClasses);
    double loss = 0;
    for (std::size_t at = 0; at < order.size(); ++at) {
        const Digit& digit = *order[at];
        think(digit, hidden, output);
        loss -= std::log(std::max(static_cast<double>(output[digit.label]), 1e-12));
        output[digit.label] -= 1;
        std::vector<float> error(options_.hidden);
        second_.backward(hidden.data(), output, error.data());
        for (std::size_t unit = 0; unit < error.size(); ++unit) {
            error[unit] = hidden[unit] > 0 ? error[unit] : 0;
        }
        first_.backward(digit.pixels.data(), error, nullptr);
        const std::size_t in_batch = at % batch + 1;
        if (in_batch == batch || at + 1 == order.size()) {
            const float share = 1.0F / static_cast<float>(in_batch);
            first_.step(options_, share);
            second_.step(options_, share);
        }
    }
    return loss / static_cast<double>(order.size());
}

double Network::accuracy(const std::vector<const Digit*>& digits) const {
    std::vector<float> hidden(options_.hidden);
    std::vector<float> output(kClasses);
    const auto right = std::count_if(digits.begin(), digits.end(), [&](const Digit* digit) {
        think(*digit, hidden, output);
        const auto best = std::max_element(output.begin(), output.end()) - output.begin();
        return static_cast<std::size_t>(best) == digit->label;
    });
    return static_cast<double>(right) / static_cast<double>(digits.size());
}

void Network::save(std::ostream& out) const {
    out.precision(9);
    out << options_.hidden << '\n' << random_ << '\n';
    for (const std::vector<float>* values :
         {&first_.weights, &first_.velocity, &second_.weights, &second_.velocity}) {
        for (const float value : *values) {
            out << value << ' ';
        }
        out << '\n';
    }
}

bool Network::load(std::istream& in) {
    std::size_t hidden = 0;
    in >> hidden;
    if (hidden != options_.hidden) {
        return false;
    }
    in >> random_;
    for (std::vector<float>* values :
         {&first_.weights, &first_.velocity, &second_.weights, &second_.velocity}) {
        for (float& value : *values) {
            in >> value;
        }
    }
    return static_cast<bool>(in);
}
