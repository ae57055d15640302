#include "sparse/belady.hpp"

#include <algorithm>
#include <limits>

namespace sparse {

namespace {

constexpr Label kEnd = std::numeric_limits<Label>::max();

}  // namespace

Belady::Belady(const Network& net, int memory, const Uses& uses)
    : uses_(uses), evictions_(net, memory, uses), difference_(uses),
      candidates_(uses, evictions_, difference_), events_(net.connections() + 1),
      old_start_(2 * net.connections(), -1), old_given_up_(2 * net.connections(), -1) {}

std::int64_t Belady::change() {
  prepare();
  const int first = first_point();
  for (const Uses::Changed& changed : uses_.changed()) {
    old_given_up_[changed.use] = evictions_.given_up(changed.use);
    evictions_.set(changed.use, -1);
  }
  begin(first);
  run(first);
  finish();
  return total();
}

void Belady::prepare() {
  for (const Uses::Changed& changed : uses_.changed()) {
    difference_.change(changed.use);
    mark(changed.use >> 1);
    if (changed.began >= 0) {
      old_start_[changed.began] = changed.use;
      mark(changed.began >> 1);
    }
    if (uses_.before(changed.use) >= 0) mark(uses_.before(changed.use) >> 1);
  }
  for (int c : uses_.moved()) {
    mark(c);
    const int gap = uses_.gap(c);
    gap < uses_.size() ? mark(uses_.order()[gap]) : events_.insert(gap);
  }
}

void Belady::mark(int connection) {
  const int p = uses_.position(connection);
  if (events_.has(p)) return;
  events_.insert(p);
  marked_.push_back(connection);
}

// Up to there both schedules are the same: nothing that ends in the stretch is given up, or
// nothing that changed has begun.
int Belady::first_point() const {
  int begun = uses_.low();
  for (const Uses::Changed& changed : uses_.changed()) {
    if (changed.began >= 0) begun = std::min(begun, uses_.position(changed.began >> 1));
    const int now = uses_.before(changed.use);
    if (now >= 0) begun = std::min(begun, uses_.position(now >> 1));
  }
  return begun == uses_.low() ? begun : std::max(begun, first_given_up(begun));
}

int Belady::first_given_up(int begin) const {
  const std::vector<int>& order = uses_.order();
  const int low = uses_.low(), high = uses_.high();
  if (low - begin < high - low) {
    for (int p = begin; p < low; ++p) {
      for (int use : evictions_.point(order[p]).victims) {
        if (use < 0) continue;
        const int end = uses_.position(use >> 1);
        if (end >= low && end <= high) return p;
      }
    }
    return low;
  }
  int first = low;
  for (int p = low; p <= high; ++p) {
    for (int use : {2 * order[p], 2 * order[p] + 1}) {
      const int by = evictions_.given_up(use);
      const int at = uses_.position(by < 0 ? order[low] : by);
      first = at < first ? at : first;
    }
  }
  return first;
}

void Belady::begin(int first) {
  candidates_.clear();
  for (const Uses::Changed& changed : uses_.changed()) {
    const int now = uses_.before(changed.use);
    if (changed.began >= 0 && uses_.position(changed.began >> 1) < first) add_old(changed.use);
    if (now >= 0 && uses_.position(now >> 1) < first) add_new(changed.use);
  }
  last_slack_ = evictions_.room();
  last_starts_ = 0;
  if (first > 0) pass_old(evictions_.point(uses_.order()[first - 1]));
}

void Belady::run(int first) {
  const std::vector<int>& order = uses_.order();
  for (next_ = first;; ++next_) {
    if (difference_.none()) {
      const int event = events_.next(next_);
      if (event > uses_.high() + 1) return;
      if (event > next_) pass_old(evictions_.point(order[event - 1]));
      next_ = event;
    }
    const bool marked = events_.has(next_);
    if (marked) {
      if (const Uses::Row* row = uses_.row(next_)) {
        for (int c : row->connections) at_new(c);
      }
    }
    if (next_ == uses_.size()) return;
    ++simulated_;
    const int c = order[next_];
    if (marked && uses_.moved(c)) {
      leave_old(c);
      continue;
    }
    const Point& point = evictions_.point(c);
    pass_old(point);
    if (marked && is_touched(c)) {
      at_common(c);
    } else if (const int more = difference_.count(); more != 0) {
      if (point.victims[0] >= 0 || more > point.slack) {
        at_common(c);
      } else {
        evictions_.use_slack(c, more);
      }
    } else if (point.victims[0] >= 0 && !gives_up_the_same(point)) {
      at_common(c);
    }
  }
}

// Whether something that differs or changed begins or ends at a connection.
bool Belady::is_touched(int c) const {
  for (int use : {2 * c, 2 * c + 1}) {
    const int next = uses_.after(use);
    if (difference_.in_one(use) || old_start_[use] >= 0) return true;
    if (next >= 0 && difference_.has_changed(next)) return true;
  }
  return false;
}

void Belady::pass_old(const Point& point) {
  last_starts_ = point.starts;
  last_slack_ = point.slack;
}

// A connection that moved away: only the old schedule has it here.
void Belady::leave_old(int c) {
  const Point old = evictions_.point(c);
  for (int use : {2 * c, 2 * c + 1}) difference_.remove_old(use);
  give_back(old);
  start_old(c);
  pass_old(old);
  candidates_.pass(c);
}

// Whether both schedules give up the same where nothing that differs begins or ends, and as many
// intervals are in the one only as in the other.
bool Belady::gives_up_the_same(const Point& point) {
  const int top = difference_.top();
  const Label end = top < 0 ? -1 : uses_.key(top);
  for (int use : point.victims) {
    if (use >= 0 && (difference_.in_old(use) || end > uses_.key(use))) return false;
  }
  return true;
}

void Belady::at_common(int c) {
  const Point old = evictions_.point(c);
  for (int use : {2 * c, 2 * c + 1}) {
    difference_.remove_old(use);
    difference_.remove_new(use);
  }
  const Label bound = give_back(old);
  Point made;
  give_up(c, evictions_.room() - old.slack, bound, made);
  made.slack = old.slack - difference_.count();
  made.starts = evictions_.starts_of(c);
  evictions_.put(c, made);
  start_old(c);
  start_new(c);
}

// A connection that moved here: only the new schedule has it here.
void Belady::at_new(int c) {
  for (int use : {2 * c, 2 * c + 1}) difference_.remove_new(use);
  const int held = evictions_.room() - last_slack_ + last_starts_;
  Point made;
  give_up(c, held, kEnd, made);
  made.slack = evictions_.room() - held - difference_.count();
  made.starts = evictions_.starts_of(c);
  placed_.emplace_back(c, made);
  start_new(c);
}

// What the old schedule gives up here the new one still has. Returns the least key of these, all
// that is in both ends earlier.
Label Belady::give_back(const Point& old) {
  Label bound = kEnd;
  for (int use : old.victims) {
    if (use < 0) continue;
    if (difference_.in_old(use)) {
      difference_.remove_old(use);
    } else {
      bound = std::min(bound, uses_.key(use));
      evictions_.set(use, -1);
      add_new(use);
    }
  }
  return bound;
}

void Belady::give_up(int c, int held, Label bound, Point& point) {
  for (int i = 0; held + difference_.count() > evictions_.room(); ++i) {
    const int own = difference_.top();
    const Label end = own < 0 ? -1 : uses_.key(own);
    int use = end < bound
                  ? candidates_.farthest(next_, next_ + !uses_.moved(c), held)
                  : -1;
    if (use < 0 || end > uses_.key(use)) {
      use = own;
      difference_.remove_new(use);
    } else {
      add_old(use);
    }
    evictions_.set(use, c);
    point.victims[i] = use;
  }
}

void Belady::start_old(int c) {
  for (int use : {2 * c, 2 * c + 1}) {
    if (old_start_[use] >= 0) add_old(old_start_[use]);
  }
}

void Belady::start_new(int c) {
  for (int use : {2 * c, 2 * c + 1}) {
    const int next = uses_.after(use);
    if (next >= 0 && difference_.has_changed(next)) add_new(next);
  }
}

void Belady::add_new(int use) {
  if (difference_.in_old(use) && !uses_.moved(use >> 1)) {
    difference_.remove_old(use);
    return merge(use);
  }
  mark(use >> 1);
  difference_.add_new(use);
}

void Belady::add_old(int use) {
  if (difference_.in_new(use) && !uses_.moved(use >> 1)) {
    difference_.remove_new(use);
    return merge(use);
  }
  mark(use >> 1);
  difference_.add_old(use);
}

// A changed interval that has begun in both schedules is the same from there on.
void Belady::merge(int use) {
  difference_.merge(use);
  evictions_.set(use, old_given_up_[use]);
  candidates_.add(use);
}

void Belady::finish() {
  for (const auto& [c, point] : placed_) evictions_.put(c, point);
  placed_.clear();
  for (int c : marked_) {
    events_.erase(uses_.position(c));
    candidates_.forget(c);
    for (int use : {2 * c, 2 * c + 1}) {
      old_start_[use] = -1;
      difference_.forget(use);
    }
  }
  events_.erase(uses_.size());
  marked_.clear();
}

}  // namespace sparse
