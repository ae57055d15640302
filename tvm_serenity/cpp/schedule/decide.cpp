#include "schedule/decide.hpp"

#include <algorithm>
#include <limits>

#include "schedule/visited.hpp"
#include "schedule/widths.hpp"

namespace schedule {

namespace {

template <int N>
class Search {
 public:
  Search(const Instance& instance, const Closures& closures, Rules rules, Bytes budget,
         Limits& limits)
      : moves_(instance, closures, rules),
        rules_(rules),
        budget_(budget),
        limits_(limits),
        visited_(moves_.width()),
        block_(closures.words) {}

  Decision run() {
    Decision result;
    result.next = std::numeric_limits<Bytes>::max();
    current_ = moves_.start();
    for (;;) {
      const bool open = settle(result);
      if (moves_.is_full(current_)) {
        result.status = Status::feasible;
        result.order = order_;
        return result;
      }
      if (open && !push(result)) return result;
      if (!descend()) return result;
    }
  }

 private:
  struct Frame {
    Node node;
    std::vector<Move> moves;  // in the order in which they are tried
    std::size_t next = 0;
    std::size_t order_length = 0;
  };

  // Takes committing moves as long as there are any; false if the state was visited before.
  bool settle(Decision& result) {
    while (!moves_.is_full(current_)) {
      if (rules_.visited && visited_.contains(current_.set.data())) return false;
      moves_.expand(current_, budget_, found_, result.next);
      if (found_.size() != 1 || !found_[0].commits) return true;
      take(current_, found_[0], scratch_);
      std::swap(current_, scratch_);
    }
    return false;
  }

  void take(const Node& node, const Move& move, Node& next) {
    moves_.block_of(node, move, block_.data());
    moves_.append(block_.data(), move.last, order_);
    moves_.advance(node, move, next);
  }

  // Makes the current state a frame; false if a limit is reached.
  bool push(Decision& result) {
    if (result.states >= limits_.states) return stop(result, Status::states);
    if (limits_.out_of_time(result.states)) return stop(result, Status::time);
    if (rules_.visited) {
      if (visited_.bytes_after_insert() > limits_.memory_bytes)
        return stop(result, Status::memory);
      visited_.insert(current_.set.data());
    }
    ++result.states;
    if (depth_ == frames_.size()) frames_.emplace_back();
    Frame& frame = frames_[depth_++];
    std::swap(frame.node, current_);
    std::swap(frame.moves, found_);
    std::sort(frame.moves.begin(), frame.moves.end());
    frame.next = 0;
    frame.order_length = order_.size();
    return true;
  }

  static bool stop(Decision& result, Status status) {
    result.status = status;
    return false;
  }

  // To the next untried move; false when there is none left.
  bool descend() {
    while (depth_ > 0) {
      Frame& frame = frames_[depth_ - 1];
      if (frame.next == frame.moves.size()) {
        --depth_;
        continue;
      }
      const Move& move = frame.moves[frame.next++];
      if (known(frame.node, move)) continue;
      order_.resize(frame.order_length);
      take(frame.node, move, current_);
      return true;
    }
    return false;
  }

  bool known(const Node& node, const Move& move) {
    if (!rules_.visited) return false;
    moves_.block_of(node, move, block_.data());
    for (std::size_t i = 0; i < block_.size(); ++i) block_[i] |= node.set[i];
    return visited_.contains(block_.data());
  }

  Moves<N> moves_;
  Rules rules_;
  Bytes budget_;
  Limits& limits_;
  Visited<N> visited_;
  std::vector<Frame> frames_;
  std::size_t depth_ = 0;
  Node current_, scratch_;
  std::vector<Move> found_;
  std::vector<int> order_;
  std::vector<Word> block_;
};

}  // namespace

Decision decide(const Instance& instance, const Closures& closures, Rules rules, Bytes budget,
                Limits& limits) {
  return with_width(closures.words, [&](auto width) {
    return Search<decltype(width)::value>(instance, closures, rules, budget, limits).run();
  });
}

}  // namespace schedule
