#include "sparse/belady.hpp"

#include <algorithm>

namespace sparse {

namespace {

constexpr int kFar = 1024;  // connections after which candidates are collected anew

}  // namespace

Belady::Belady(const Network& net, int memory, const Uses& uses)
    : net_(net), uses_(uses), room_(memory - 3), points_(net.connections()),
      given_up_(2 * net.connections(), -1), late_(net.neurons, 0),
      state_(2 * net.connections(), State::same), old_start_(2 * net.connections(), -1),
      old_given_up_(2 * net.connections(), -1), in_old_(2 * net.connections(), 0),
      left_(net.connections(), 0), slot_(2 * net.connections(), -1) {
  rebuild(uses.order());
}

void Belady::rebuild(const std::vector<int>& order) {
  const int count = net_.connections();
  std::fill(given_up_.begin(), given_up_.end(), -1);
  std::fill(late_.begin(), late_.end(), 0);
  total_ = count + net_.neurons;
  for (int v = 0; v < net_.neurons; ++v) total_ += net_.fan_in[v] > 0 && net_.is_output(v);
  TopSet kept(2 * static_cast<std::int64_t>(count));
  int held = 0;
  for (int p = 0; p < count; ++p) {
    const int c = order[p];
    Point point;
    for (int use : {2 * c, 2 * c + 1}) {
      if (uses_.before(use) < 0 || given_up_[use] >= 0) continue;
      kept.erase(uses_.key(use));
      --held;
    }
    for (int i = 0; held > room_; ++i, --held) {
      const int key = static_cast<int>(kept.top());
      kept.erase(key);
      point.victims[i] = 2 * order[key >> 1] + (key & 1);
      set(point.victims[i], c);
    }
    point.slack = room_ - held;
    point.starts = static_cast<char>(starts_of(c));
    held += point.starts;
    for (int use : {2 * c, 2 * c + 1}) {
      if (uses_.after(use) >= 0) kept.insert(uses_.key(uses_.after(use)));
    }
    points_[c] = point;
  }
  was_.clear();
}

int Belady::starts_of(int connection) const {
  return (uses_.after(2 * connection) >= 0) + (uses_.after(2 * connection + 1) >= 0);
}

// Every use after a neuron's first one that was given up is a read; a partial sum given up is a
// write, too, and so is the first time a complete value is, unless it is written anyway.
void Belady::set(int use, int given_up) {
  const int was = given_up_[use];
  if (was == given_up) return;
  was_.push_back({use, was});
  given_up_[use] = given_up;
  if ((was >= 0) == (given_up >= 0)) return;
  const int sign = given_up >= 0 ? 1 : -1;
  total_ += sign * (1 + (use & 1));
  const int v = uses_.neuron(use);
  if (use & 1 || net_.fan_in[v] == 0 || net_.is_output(v)) return;
  const int before = late_[v];
  late_[v] += sign;
  total_ += (late_[v] > 0) - (before > 0);
}

void Belady::put(int connection, const Point& point) {
  Point& now = points_[connection];
  const char marked = now.marked;
  now.marked = 0;
  was_points_.push_back({connection, now});
  now = point;
  now.marked = marked;
}

void Belady::mark(int connection) {
  if (points_[connection].marked) return;
  points_[connection].marked = 1;
  marked_.push_back(connection);
}

std::int64_t Belady::change() {
  old_total_ = total_;
  for (const Uses::Changed& changed : uses_.changed()) {
    state_[changed.use] = State::changed;
    mark(changed.use >> 1);
    if (changed.began >= 0) {
      old_start_[changed.began] = changed.use;
      mark(changed.began >> 1);
    }
    if (uses_.before(changed.use) >= 0) mark(uses_.before(changed.use) >> 1);
  }
  for (int c : uses_.moved()) mark(c);
  const int first = first_point();
  for (const Uses::Changed& changed : uses_.changed()) {
    old_given_up_[changed.use] = given_up_[changed.use];
    set(changed.use, -1);
  }
  begin(first);
  run(first);
  finish();
  return total_;
}

// Up to there both schedules are the same: nothing that ends in the stretch is given up, or
// nothing that changed has begun.
int Belady::first_point() const {
  const int low = uses_.low();
  int begun = low, given_up = low;
  for (const Uses::Changed& changed : uses_.changed()) {
    if (changed.began >= 0) begun = std::min(begun, uses_.position(changed.began >> 1));
    const int now = uses_.before(changed.use);
    if (now >= 0) begun = std::min(begun, uses_.position(now >> 1));
  }
  if (begun == low) return low;
  for (int p = low; p <= uses_.high(); ++p) {
    const int c = uses_.order()[p];
    for (int use : {2 * c, 2 * c + 1}) {
      if (given_up_[use] >= 0) given_up = std::min(given_up, uses_.position(given_up_[use]));
    }
  }
  return std::max(begun, given_up);
}

void Belady::begin(int first) {
  for (const Uses::Changed& changed : uses_.changed()) {
    const int now = uses_.before(changed.use);
    if (changed.began >= 0 && uses_.position(changed.began >> 1) < first) add_old(changed.use);
    if (now >= 0 && uses_.position(now >> 1) < first) add_new(changed.use);
  }
  last_slack_ = room_;
  last_starts_ = 0;
  if (first > 0) pass_old(points_[uses_.order()[first - 1]]);
}

void Belady::run(int first) {
  const std::vector<int>&old = uses_.order(), &tried = uses_.tried();
  const int count = uses_.size(), high = uses_.high();
  next_old_ = first;
  seen_ = -1;
  int p = first;
  for (;; ++p) {
    while (next_old_ < count && uses_.moved(old[next_old_])) leave_old(old[next_old_++]);
    if (p == count || (p > high && idle())) break;
    const int c = tried[p];
    const Point& point = points_[c];
    if (uses_.moved(c)) {
      at_new(c);
      continue;
    }
    ++next_old_;
    pass_old(point);
    if ((point.marked || !idle()) && !same_at(c)) at_common(c);
  }
  simulated_ += p - first;
}

void Belady::pass_old(const Point& point) {
  last_starts_ = point.starts;
  last_slack_ = point.slack;
}

// A connection that moved away: only the old schedule has it here.
void Belady::leave_old(int c) {
  const Point& old = points_[c];
  for (int use : {2 * c, 2 * c + 1}) remove_old(use);
  give_back(old);
  start_old(c);
  pass_old(old);
  left_[c] = 1;
}

// Whether both schedules do the same at a connection where nothing that differs begins or ends.
bool Belady::same_at(int c) {
  Point& point = points_[c];
  if (point.marked || difference() > point.slack) return false;
  for (int use : point.victims) {
    if (use < 0) continue;
    if (difference() != 0 || in_old_[use] || top() > uses_.key(use)) return false;
  }
  if (difference() != 0) {
    Point made = point;
    made.slack -= difference();
    put(c, made);
  }
  return true;
}

void Belady::at_common(int c) {
  const Point old = points_[c];
  for (int use : {2 * c, 2 * c + 1}) {
    remove_old(use);
    remove_new(use);
  }
  const int bound = give_back(old);
  Point made;
  give_up(c, room_ - old.slack, bound, made);
  made.slack = old.slack - difference();
  made.starts = static_cast<char>(starts_of(c));
  put(c, made);
  start_old(c);
  start_new(c);
}

// A connection that moved here: only the new schedule has it here.
void Belady::at_new(int c) {
  for (int use : {2 * c, 2 * c + 1}) remove_new(use);
  const int held = room_ - last_slack_ + last_starts_;
  Point made;
  give_up(c, held, kNever, made);
  made.slack = room_ - held - difference();
  made.starts = static_cast<char>(starts_of(c));
  placed_.push_back({c, made});
  start_new(c);
}

// What the old schedule gives up here the new one still has. Returns the least key of these, all
// that is in both ends earlier.
int Belady::give_back(const Point& old) {
  int bound = kNever;
  for (int use : old.victims) {
    if (use < 0) continue;
    if (in_old_[use]) {
      remove_old(use);
    } else {
      bound = std::min(bound, uses_.key(use));
      set(use, -1);
      add_new(use);
    }
  }
  return bound;
}

void Belady::give_up(int c, int held, int bound, Point& point) {
  for (int i = 0; held + difference() > room_; ++i) {
    int use = top() < bound ? farthest_common(c, held) : -1;
    if (use < 0 || top() > uses_.key(use)) {
      use = top_;
      remove_new(use);
    } else {
      add_old(use);
    }
    set(use, c);
    point.victims[i] = use;
  }
}

// Of the values both have, the one that ends last. Its candidates are collected when first asked
// for, and what began since is added.
int Belady::farthest_common(int c, int held) {
  const int here = uses_.position(c);
  const int passed = next_old_ - !uses_.moved(c);  // what begins at c has not begun
  if (seen_ < 0 || passed - seen_ > kFar) collect(here, held - only_old_);
  for (; seen_ < passed; ++seen_) {
    const int begun = uses_.order()[seen_];
    for (int use : {2 * begun, 2 * begun + 1}) {
      const int next = uses_.after(use);
      if (next >= 0 && state_[next] == State::same) candidate(next, here);
    }
  }
  while (!candidates_.empty()) {
    const int key = candidates_.front();
    const int use = 2 * uses_.tried()[key >> 1] + (key & 1);
    if (common(use, here)) return use;
    std::pop_heap(candidates_.begin(), candidates_.end());
    candidates_.pop_back();
  }
  return -1;
}

void Belady::collect(int here, int count) {
  const std::vector<int>& old = uses_.order();
  candidates_.clear();
  seen_ = next_old_ - !uses_.moved(uses_.tried()[here]);
  for (int p = next_old_; count > 0 && p < uses_.size(); ++p) {
    for (int use : {2 * old[p], 2 * old[p] + 1}) {
      if (state_[use] == State::changed || uses_.before(use) < 0 || !common(use, here)) continue;
      if (state_[use] == State::same && uses_.position(uses_.before(use) >> 1) >= here) continue;
      candidates_.push_back(uses_.key(use));
      --count;
    }
  }
  std::make_heap(candidates_.begin(), candidates_.end());
}

void Belady::candidate(int use, int here) {
  if (!common(use, here)) return;
  candidates_.push_back(uses_.key(use));
  std::push_heap(candidates_.begin(), candidates_.end());
}

// Whether both schedules have what this use waits for; it has begun.
bool Belady::common(int use, int here) const {
  if (uses_.position(use >> 1) <= here || in_old_[use] || slot_[use] >= 0) return false;
  const int by = given_up_[use];
  if (by < 0) return true;
  if (!uses_.moved(by)) return uses_.position(by) > here;
  const int* victims = points_[by].victims;
  return !left_[by] && (victims[0] == use || victims[1] == use);
}

void Belady::start_old(int c) {
  for (int use : {2 * c, 2 * c + 1}) {
    if (old_start_[use] >= 0) add_old(old_start_[use]);
  }
}

void Belady::start_new(int c) {
  for (int use : {2 * c, 2 * c + 1}) {
    const int next = uses_.after(use);
    if (next >= 0 && state_[next] == State::changed) add_new(next);
  }
}

void Belady::add_new(int use) {
  if (in_old_[use] && !uses_.moved(use >> 1)) {
    remove_old(use);
    return merge(use);
  }
  mark(use >> 1);
  if (top_ >= 0 && uses_.key(use) > uses_.key(top_)) top_ = use;
  if (only_new_.empty()) top_ = use;
  slot_[use] = static_cast<int>(only_new_.size());
  only_new_.push_back(use);
}

void Belady::add_old(int use) {
  if (slot_[use] >= 0 && !uses_.moved(use >> 1)) {
    remove_new(use);
    return merge(use);
  }
  mark(use >> 1);
  in_old_[use] = 1;
  ++only_old_;
}

// A changed interval that has begun in both schedules is the same from there on.
void Belady::merge(int use) {
  state_[use] = State::merged;
  set(use, old_given_up_[use]);
  if (seen_ < 0) return;
  candidates_.push_back(uses_.key(use));
  std::push_heap(candidates_.begin(), candidates_.end());
}

void Belady::remove_new(int use) {
  if (slot_[use] < 0) return;
  const int last = only_new_.back();
  only_new_[slot_[use]] = last;
  slot_[last] = slot_[use];
  only_new_.pop_back();
  slot_[use] = -1;
  if (top_ == use) top_ = -1;
}

void Belady::remove_old(int use) {
  only_old_ -= in_old_[use];
  in_old_[use] = 0;
}

// The key of what only the new schedule has that ends last, -1 if there is nothing.
int Belady::top() {
  if (only_new_.empty()) return -1;
  if (top_ < 0) {
    top_ = *std::max_element(only_new_.begin(), only_new_.end(), [this](int a, int b) {
      return uses_.key(a) < uses_.key(b);
    });
  }
  return uses_.key(top_);
}

void Belady::finish() {
  for (const auto& [c, point] : placed_) put(c, point);
  placed_.clear();
  for (int c : marked_) {
    points_[c].marked = left_[c] = 0;
    for (int use : {2 * c, 2 * c + 1}) {
      state_[use] = State::same;
      old_start_[use] = -1;
      remove_old(use);
      remove_new(use);
    }
  }
  marked_.clear();
}

void Belady::keep() {
  was_.clear();
  was_points_.clear();
}

void Belady::undo() {
  for (std::size_t i = was_.size(); i-- > 0;) set(was_[i].use, Was(was_[i]).given_up);
  for (std::size_t i = was_points_.size(); i-- > 0;) {
    points_[was_points_[i].connection] = was_points_[i].point;
  }
  total_ = old_total_;
  keep();
}

}  // namespace sparse
