#include "sparse/replay.hpp"

#include <algorithm>

namespace sparse {

Replay::Replay(const Network& net, std::vector<int> order, const Rule& rule)
    : net_(net), rule_(rule), spacing_(std::max(128, rule.memory)), order_(std::move(order)),
      next_(next_uses(net, order_)), evicted_(next_.size(), kNever),
      first_use_(net.neurons + 1, 0), uses_(next_.size()),
      clean_uses_(next_.size()), dirty_uses_(next_.size()), in_(net.neurons, 0),
      dirty_(net.neurons, 0), slot_(net.neurons, -1), tag_(2 * net.neurons),
      cursor_(net.neurons, 0), stamp_(net.neurons, 0) {
  Random random(1);
  for (auto& tag : tag_) tag = random.next();
  for (int v = 0; v < net.neurons; ++v) {
    first_use_[v + 1] = first_use_[v] + net.fan_in[v] + net.fan_out[v];
    cursor_[v] = first_use_[v];
  }
  const int count = net.connections();
  for (int p = 0; p < count; ++p) {
    uses_[cursor_[net.source[order_[p]]]++] = 2 * p;
    uses_[cursor_[net.target[order_[p]]]++] = 2 * p + 1;
  }
  checkpoints_.resize((count + spacing_ - 1) / spacing_);
  total_ = count + rerun(0, count);  // nothing to compare with: runs to the end
  old_checkpoints_.clear();
  old_evicted_.clear();
  simulated_ = 0;
}

std::int64_t Replay::change(int low, const std::vector<int>& stretch) {
  const int high = low + static_cast<int>(stretch.size()) - 1;
  old_low_ = low;
  old_stretch_.assign(order_.begin() + low, order_.begin() + high + 1);
  old_checkpoints_.clear();
  old_evicted_.clear();
  old_total_ = total_;
  const int first = restart_of(low, high) / spacing_;
  forget_evictions(low, high);
  place(low, stretch);
  total_ += rerun(first, high);
  return total_;
}

void Replay::forget_evictions(int low, int high) {
  for (int use = 2 * low; use <= 2 * high + 1; ++use) {
    if (evicted_[use] != kNever) note_eviction(use, kNever);
  }
}

void Replay::undo() {
  place(old_low_, old_stretch_);
  for (std::size_t i = old_evicted_.size(); i-- > 0;) {
    evicted_[old_evicted_[i].first] = old_evicted_[i].second;
  }
  for (std::size_t i = 0; i < old_checkpoints_.size(); ++i) {
    std::swap(checkpoints_[old_checkpoint_ + i], old_checkpoints_[i]);
  }
  total_ = old_total_;
}

// One pass writes the uses of the stretch's neurons: each neuron has as many as before.
void Replay::place(int low, const std::vector<int>& stretch) {
  ++round_;
  std::copy(stretch.begin(), stretch.end(), order_.begin() + low);
  auto use = [&](int neuron, int key) {
    int& at = cursor_[neuron];
    const int begin = first_use_[neuron];
    if (stamp_[neuron] != round_) {
      stamp_[neuron] = round_;
      at = static_cast<int>(std::lower_bound(uses_.begin() + begin,
                                             uses_.begin() + first_use_[neuron + 1], 2 * low) -
                            uses_.begin());
    }
    uses_[at] = key;
    if (at > begin) next_[uses_[at - 1]] = key;
    ++at;
    next_[key] = at < first_use_[neuron + 1] ? uses_[at] : kNever;
  };
  for (std::size_t i = 0; i < stretch.size(); ++i) {
    const int p = low + static_cast<int>(i);
    use(net_.source[stretch[i]], 2 * p);
    use(net_.target[stretch[i]], 2 * p + 1);
  }
}

// A dirty value competes as if used `delay` connections earlier, so choices that far around the
// stretch may differ too.
int Replay::restart_of(int low, int high) const {
  const int begin = std::max(0, low - rule_.delay - 1);
  const int end = std::min(net_.connections() - 1, high + rule_.delay + 1);
  int earliest = low;
  for (int use = 2 * begin; use <= 2 * end + 1; ++use) earliest = std::min(earliest, evicted_[use]);
  return earliest;
}

std::int64_t Replay::rerun(int first, int high) {
  const int count = net_.connections();
  old_checkpoint_ = first;
  std::int64_t difference = 0;
  restore(first);
  int p = first * spacing_;
  for (int c = first; p < count; ++c) {
    const int end = std::min(count, p + spacing_);
    Checkpoint made;
    if (c == first) {  // the same content as before
      made.content = checkpoints_[c].content;
      made.hash = checkpoints_[c].hash;
    } else {
      if (p > high && same_as(checkpoints_[c])) break;
      made = snapshot();
    }
    cost_ = 0;
    for (; p < end; ++p) step(p);
    made.cost = cost_;
    difference += cost_ - checkpoints_[c].cost;
    old_checkpoints_.push_back(std::move(checkpoints_[c]));
    checkpoints_[c] = std::move(made);
  }
  simulated_ += p - first * spacing_;
  clear();
  return difference;
}

void Replay::restore(int checkpoint) {
  const int use = 2 * checkpoint * spacing_;
  for (int held : checkpoints_[checkpoint].content) {
    const int neuron = held >> 1;
    enter(neuron);
    if (held & 1) soil(neuron);
    const auto end = uses_.begin() + first_use_[neuron + 1];
    uses_of(neuron).insert(*std::lower_bound(uses_.begin() + first_use_[neuron], end, use));
  }
}

void Replay::clear() {
  while (!held_.empty()) {
    const int neuron = held_.back();
    leave(neuron);
  }
  for (TopSet* set : {&clean_uses_, &dirty_uses_}) {
    for (std::int64_t use = set->top(); use >= 0; use = set->top()) set->erase(use);
  }
}

Replay::Checkpoint Replay::snapshot() const {
  Checkpoint made;
  made.content.reserve(held_.size());
  for (int neuron : held_) made.content.push_back(2 * neuron + dirty_[neuron]);
  made.hash = hash_;
  return made;
}

bool Replay::same_as(const Checkpoint& other) const {
  if (other.hash != hash_ || other.content.size() != held_.size()) return false;
  for (int held : other.content) {
    if (!in_[held >> 1] || dirty_[held >> 1] != (held & 1)) return false;
  }
  return true;
}

void Replay::enter(int neuron) {
  in_[neuron] = 1;
  slot_[neuron] = static_cast<int>(held_.size());
  held_.push_back(neuron);
  hash_ ^= tag_[2 * neuron];
}

void Replay::leave(int neuron) {
  hash_ ^= tag_[2 * neuron] ^ (dirty_[neuron] ? tag_[2 * neuron + 1] : 0);
  in_[neuron] = dirty_[neuron] = 0;
  slot_[held_.back()] = slot_[neuron];
  held_[slot_[neuron]] = held_.back();
  held_.pop_back();
}

void Replay::soil(int neuron) {
  if (dirty_[neuron]) return;
  dirty_[neuron] = 1;
  hash_ ^= tag_[2 * neuron + 1];
}

void Replay::note_eviction(int use, int position) {
  old_evicted_.emplace_back(use, evicted_[use]);
  evicted_[use] = position;
}

void Replay::evict(int position) {
  std::int64_t use = clean_uses_.top();
  const std::int64_t other = dirty_uses_.top();
  if (other >= 0 && (use < 0 || other - 2 * rule_.delay > use)) use = other;
  const int c = order_[use >> 1], victim = use & 1 ? net_.target[c] : net_.source[c];
  uses_of(victim).erase(use);
  note_eviction(static_cast<int>(use), position);
  cost_ += dirty_[victim];
  leave(victim);
}

void Replay::keep(int position, int neuron, int use) {
  if (use <= 2 * position + 3) return;  // pinned by the next connection before anything leaves
  if (use != kNever) return uses_of(neuron).insert(use);
  cost_ += dirty_[neuron] && net_.is_output(neuron);
  leave(neuron);
}

void Replay::step(int p) {
  const int s = net_.source[order_[p]], t = net_.target[order_[p]];
  const int room = rule_.memory - 1;
  for (int side = 0; side < 2; ++side) {
    const int neuron = side ? t : s, use = 2 * p + side;
    if (!in_[neuron]) continue;
    uses_of(neuron).erase(use);
    if (evicted_[use] != kNever) note_eviction(use, kNever);
  }
  for (int neuron : {s, t}) {
    if (in_[neuron]) continue;
    if (static_cast<int>(held_.size()) == room) evict(p);
    ++cost_;
    enter(neuron);
  }
  soil(t);
  keep(p, s, next_[2 * p]);
  keep(p, t, next_[2 * p + 1]);
}

}  // namespace sparse
