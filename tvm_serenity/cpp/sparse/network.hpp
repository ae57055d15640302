// A sparse feed-forward network as a list of connections, and helpers that the searches share.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sparse {

struct Network {
  int neurons = 0;
  std::vector<int> source, target;  // of each connection, by its number
  std::vector<int> fan_in, fan_out;
  std::vector<char> output;  // asked for: written when complete

  Network(std::vector<int> source, std::vector<int> target, std::vector<char> output);
  int connections() const { return static_cast<int>(source.size()); }
  bool is_output(int neuron) const { return output[neuron]; }
};

// Connections by one of their ends, as compressed rows of connection numbers in ascending order.
struct Rows {
  std::vector<int> first, connection;

  Rows(int neurons, const std::vector<int>& end);
  const int* begin(int neuron) const { return connection.data() + first[neuron]; }
  const int* end(int neuron) const { return connection.data() + first[neuron + 1]; }
};

// Called regularly by long-running code; throws to stop it.
using Poll = std::function<void()>;

// A random generator with the same numbers on every machine (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int count) {
    return static_cast<int>((static_cast<unsigned __int128>(next()) * count) >> 64);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace sparse
