// The I/Os of an order under write-aware MIN, updated incrementally after permutations of stretches.
//
// Checkpoints hold the content of fast memory every few positions. After a permutation of the stretch
// [low, high], the simulation restarts at the last checkpoint before any difference: before `low`, and
// before the first eviction that now chooses another value. It ends at the first checkpoint after
// `high` with the old content, because from there on content and future are unchanged.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sparse/simulate.hpp"
#include "sparse/top_set.hpp"

namespace sparse {

class Replay {
 public:
  Replay(const Network& net, std::vector<int> order, const Rule& rule);

  // Put `stretch` in place of the connections at `low`...; a permutation of them. Returns the
  // new total. `undo` takes the last change back.
  std::int64_t change(int low, const std::vector<int>& stretch);
  void undo();

  std::int64_t simulated() const { return simulated_; }  // positions, in all changes

 private:
  struct Checkpoint {
    std::vector<int> content;  // 2 * neuron + dirty
    std::uint64_t hash = 0;
    std::int64_t cost = 0;  // reads and writes from here to the next checkpoint
  };

  void place(int low, const std::vector<int>& stretch);
  void forget_evictions(int low, int high);
  int restart_of(int low, int high) const;
  std::int64_t rerun(int first, int high);
  void step(int position);
  void restore(int checkpoint);
  void clear();
  Checkpoint snapshot() const;
  bool same_as(const Checkpoint& other) const;
  void enter(int neuron);
  void leave(int neuron);
  void evict(int position);
  void keep(int position, int neuron, int use);
  void soil(int neuron);
  TopSet& uses_of(int neuron) { return dirty_[neuron] ? dirty_uses_ : clean_uses_; }
  void note_eviction(int use, int position);

  const Network& net_;
  Rule rule_;
  int spacing_;
  std::vector<int> order_;
  std::vector<int> next_, evicted_;     // of each use: the next one; when its value was evicted
  std::vector<int> first_use_, uses_;   // of each neuron: its uses in order, from first_use_
  std::vector<Checkpoint> checkpoints_;
  std::int64_t total_ = 0, cost_ = 0, simulated_ = 0;

  TopSet clean_uses_, dirty_uses_;
  std::vector<char> in_, dirty_;
  std::vector<int> held_, slot_;
  std::vector<std::uint64_t> tag_;
  std::uint64_t hash_ = 0;

  std::vector<int> cursor_, stamp_;
  int round_ = 0;
  // What the last change replaced.
  int old_low_ = 0, old_checkpoint_ = 0;
  std::int64_t old_total_ = 0;
  std::vector<int> old_stretch_;
  std::vector<Checkpoint> old_checkpoints_;
  std::vector<std::pair<int, int>> old_evicted_;
};

}  // namespace sparse
