// The placement problem of the native searches.
#pragma once

#include <cstdint>
#include <vector>

namespace plan {

using Bytes = std::int64_t;

// A buffer that may share bytes with another one: anywhere, or only from a common start.
struct Partner {
  int other;
  bool anywhere;
};

// A buffer that may start `rise` above the start of a buffer that overlaps it from below.
struct Above {
  int other;
  Bytes rise;
};

// Lifetimes count sections (see plan/problem.py) and are half-open; fixed is -1 where free.
struct Instance {
  int sections = 0;
  std::vector<int> lower, upper;
  std::vector<Bytes> size, alignment, fixed;
  std::vector<std::vector<Partner>> partners;
  std::vector<std::vector<Above>> below;  // of each buffer, those it may reach from below
  std::vector<char> paired;               // whether a buffer is one of such two

  int count() const { return static_cast<int>(size.size()); }
  // How far above the start of i buffer j may start at least, where it lies above.
  Bytes rise(int i, int j) const {
    if (paired[i])
      for (const Above& above : below[i])
        if (above.other == j) return above.rise;
    return size[i];
  }
  bool meets(int i, int j) const { return lower[i] < upper[j] && lower[j] < upper[i]; }
};

// A limit that all parts of a run share. tick() is cheap: it counts a step, checks the clock and the
// interrupt callback regularly, and remembers a stop.
class Limit {
 public:
  explicit Limit(std::uint64_t steps) : steps_(steps) {}
  virtual ~Limit() = default;
  bool tick() {
    if (!stopped_ && ++ticks_ > steps_) stopped_ = true;
    return stopped_ || ((ticks_ & 255) == 0 && poll());
  }
  bool now() { return stopped_ || poll(); }
  virtual bool interrupted() const { return false; }  // Ctrl-C came

 protected:
  virtual bool check() = 0;  // whether to stop

 private:
  bool poll() { return stopped_ = check(); }
  std::uint64_t steps_, ticks_ = 0;
  bool stopped_ = false;
};

inline Bytes align_up(Bytes offset, Bytes alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

// The finaliser of splitmix64: a fixed, well-spread function of x.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

Bytes arena_of(const Instance& instance, const std::vector<Bytes>& offsets);

// Return, for each section, the bytes of the buffers live in it.
std::vector<Bytes> live_bytes(const Instance& instance);

}  // namespace plan
