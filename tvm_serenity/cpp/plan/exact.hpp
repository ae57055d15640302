// Decides whether a placement within a capacity exists, by complete search over canonical placements.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/instance.hpp"

namespace plan {

// Each rule may be switched off; docs/planner.md proves that it loses no placement.
struct Rules {
  bool stack = true;      // the lowest of a section and all above it fit the capacity
  bool first = true;      // who can be lowest in a section
  bool suffix = true;     // the late ones of a section must fit above the earliest of them
  bool dominance = true;  // no hole that a buffer under the same roof would fill
  bool twins = true;      // equal buffers in index order
  bool split = true;      // independent stretches of time are searched separately
  bool memo = true;       // states that failed before
};

enum class Verdict { kPlaced, kImpossible, kStopped };

// Which section is worked at: that of the lowest candidate, first or fullest, or the tightest.
enum class Focus { kLowest, kFullest, kTightest };
// The candidate that is tried first if several are equally low.
enum class Priority { kArea, kLifetime, kSize, kStart, kEnd, kWide, kTall, kPressure };
constexpr int kFocuses = 3, kPriorities = 8;

// How one run of the search decides; runs with different strategies share what has failed.
// With a seed, the priorities are stirred.
struct Strategy {
  Focus focus = Focus::kLowest;
  Priority priority = Priority::kArea;
  std::uint64_t seed = 0;
};

// The search recurses once per buffer; larger instances use a loop without the rules split and memo.
constexpr int kMaxDepth = 6000;

class Exact {
 public:
  Exact(const Instance& instance, const Rules& rules, Limit& limit);

  // Offsets are in offsets() after kPlaced. Gives up with kStopped after `effort`, counted in
  // buffers looked at, so that a run costs about the same time on any instance.
  // Instances beyond kMaxDepth may be placed above the capacity, up to `ceiling`.
  Verdict run(Bytes capacity, const Strategy& strategy, std::uint64_t effort,
              Bytes ceiling = 0);

  const std::vector<Bytes>& offsets() const { return offset_; }
  std::uint64_t nodes() const { return nodes_; }
  std::uint64_t effort() const { return effort_; }

 private:
  enum class Tie : Bytes { kOpen, kShared, kApart };
  enum class Field { kLeast, kFixed, kPlaced, kRefused, kTie };
  struct Change {
    Field field;
    int index;
    Bytes old;
  };
  struct Choice {
    std::size_t mark;
    int buffer, pair;  // the buffer placed, or the pair that shares its start
  };
  struct Pair {
    int one, two;
    int other(int i) const { return i == one ? two : one; }
  };
  struct Key {
    std::uint64_t low = 0, high = 0;
  };

  void find_conflicts();
  void find_members();
  void find_twins();
  void find_pressure();
  double rank_of(int buffer, Priority priority) const;
  void rank(const Strategy& strategy);
  bool reset(Bytes capacity);

  Verdict loop();
  bool step_back();
  Verdict search(int from, int to, int depth);
  Verdict branch(int from, int to, int depth, int buffer, bool* decided);
  Verdict search_parts(int* from, int* to, int depth, bool* split);
  bool propagate();
  bool tighten(int section);
  bool suffixes_fit();
  void leave_sections(int buffer);
  void rejoin_sections(int buffer);
  bool place(int buffer);
  bool refuse(int buffer);
  bool raise(int buffer, Bytes offset);
  bool decide(int pair, Tie tie);
  int open_pair(int buffer) const;
  int choose(int from, int to) const;
  bool before(int i, int j) const;
  int best_in(int section) const;
  Bytes load(int section) const;
  int tightest(int from, int to) const;
  int lowest(int from, int to) const;
  bool candidate(int buffer) const;
  bool dominated(int buffer) const;
  Key key(int from, int to) const;
  bool seen(const Key& key) const;
  void remember(const Key& key);
  Bytes& cell(Field field, int index);
  void set(Field field, int index, Bytes value);
  void undo(std::size_t mark);
  void touch(int buffer);
  void calm();

  const Instance& in_;
  Rules rules_;
  Limit& limit_;
  int count_;
  Bytes capacity_ = 0, ceiling_ = 0;
  Strategy strategy_;
  std::uint64_t nodes_ = 0, effort_ = 0, most_effort_ = 0;

  std::vector<int> by_lower_, first_at_;       // buffers by start; where each section's begin
  std::vector<std::vector<int>> conflicts_;    // buffers that meet and may never share bytes
  std::vector<std::vector<int>> obstacles_;    // those of them that are fixed
  std::vector<std::vector<int>> members_;      // per section, buffers apart from each other
  std::vector<std::vector<int>> seat_;         // per buffer and section, its place there or -1
  std::vector<int> left_;                      // per section, how many members are unplaced
  std::vector<std::vector<int>> pairs_of_;     // pairs that may share a start
  std::vector<Pair> pairs_;
  std::vector<int> twin_;                      // the equal buffer before this one, or -1
  std::vector<double> pressure_;               // the largest load a buffer lives under
  std::vector<double> rank_;                   // lower is tried first

  std::vector<Bytes> least_;    // lowest offset still possible; the offset, once placed
  std::vector<Bytes> fixed_;    // fixed, or tied to a placed partner; -1 otherwise
  std::vector<Bytes> placed_, refused_, tie_;
  std::vector<Bytes> offset_;
  std::vector<Change> trail_;
  std::vector<Choice> choices_;  // of the loop
  std::vector<char> dirty_;
  std::vector<int> queue_;
  std::vector<Key> table_;
  std::vector<std::pair<Bytes, int>> scratch_, late_;
};

}  // namespace plan
