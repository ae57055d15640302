#include "plan/settle.hpp"

#include <algorithm>
#include <numeric>

#include "plan/many.hpp"

namespace plan {

namespace {

constexpr int kIdle = 2;   // turns in a row that gain little
constexpr int kMuch = 16;  // parts of the way to the goal, one of which is not little

// A placement upside down: what a buffer takes is rounded up to its alignment, so that both of its
// ends are aligned.
class Turning {
 public:
  explicit Turning(const Instance& in) : in_(in), order_(in.count()) {
    for (int i = 0; i < in.count(); ++i) {
      in_.size[i] = align_up(in_.size[i], in_.alignment[i]);
      step_ = std::lcm(step_, in_.alignment[i]);
    }
    std::iota(order_.begin(), order_.end(), 0);
  }

  // Turned over and over again, so that fixed buffers are back where they were; empty where the
  // limit came first.
  std::vector<Bytes> twice(std::vector<Bytes> offsets, Limit& limit) {
    const Bytes top = align_up(arena_of(in_, offsets), step_);
    for (int half = 0; half < 2 && !offsets.empty(); ++half)
      offsets = once(std::move(offsets), top, limit);
    return offsets;
  }

 private:
  std::vector<Bytes> once(std::vector<Bytes> offsets, Bytes top, Limit& limit) {
    for (int i = 0; i < in_.count(); ++i) {
      offsets[i] = top - offsets[i] - in_.size[i];
      if (in_.fixed[i] >= 0) in_.fixed[i] = offsets[i];
    }
    std::sort(order_.begin(), order_.end(), [&](int i, int j) {
      return offsets[i] != offsets[j] ? offsets[i] < offsets[j] : i < j;
    });
    return place_among_many(in_, order_, limit);
  }

  Instance in_;
  std::vector<int> order_;
  Bytes step_ = 1;
};

}  // namespace

std::vector<Bytes> settle(const Instance& in, std::vector<Bytes> offsets, Bytes goal,
                          Limit& limit) {
  Turning turning(in);
  Bytes arena = arena_of(in, offsets);
  std::vector<Bytes> best = offsets;
  for (int idle = 0; idle < kIdle && arena > goal; ++idle) {
    offsets = turning.twice(std::move(offsets), limit);
    if (offsets.empty()) break;
    const Bytes turned = arena_of(in, offsets);
    if (arena - turned > (arena - goal) / kMuch) idle = -1;
    if (turned < arena) arena = turned, best = offsets;
  }
  return best;
}

std::vector<Bytes> turned_twice(const Instance& in, std::vector<Bytes> offsets, Limit& limit) {
  return Turning(in).twice(std::move(offsets), limit);
}

}  // namespace plan
