#include "schedule/closures.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

namespace schedule {

Closures::Closures(const Instance& instance)
    : words(words_for(instance.count)), ancestors(instance.count, words) {
  for (int op = 0; op < instance.count; ++op)
    for (int before : instance.predecessors[op]) {
      for (int i = 0; i < words; ++i) ancestors[op][i] |= ancestors[before][i];
      insert(ancestors[op], before);
    }
  find_sets(instance);
  find_covers();
}

namespace {

// The sets as they are found, each once.
struct Collector {
  int words;
  std::vector<std::vector<Word>> sets;
  std::vector<Closure> list;
  std::unordered_map<std::string, int> index;

  Closure& at(const std::vector<Word>& set) {
    std::string key(reinterpret_cast<const char*>(set.data()), set.size() * sizeof(Word));
    auto [place, fresh] = index.emplace(std::move(key), int(list.size()));
    if (fresh) {
      sets.push_back(set);
      list.emplace_back();
    }
    return list[place->second];
  }
};

}  // namespace

void Closures::find_sets(const Instance& instance) {
  const Width<0> width{words};
  Collector found{words, {}, {}, {}};
  std::vector<std::vector<int>> takers_of(instance.sizes.size());
  for (int op = 0; op < instance.count; ++op)
    for (int t : instance.in_place[op]) takers_of[t].push_back(op);
  auto close = [&](std::vector<Word>& set, int op) {
    for (int i = 0; i < words; ++i) set[i] |= ancestors[op][i];
    insert(set.data(), op);
  };
  for (std::size_t t = 0; t < instance.sizes.size(); ++t) {
    if (instance.consumers[t].empty()) continue;
    std::vector<Word> set(words);
    for (int op : instance.consumers[t]) close(set, op);
    Closure& closure = found.at(set);
    closure.weight += instance.sizes[t];
    for (int op : takers_of[t]) {
      bool maximal = true;  // the taker must be able to run after all the others
      for (int other : instance.consumers[t]) maximal &= !test(ancestors[other], op);
      if (maximal) closure.takers.push_back(op);
    }
  }
  for (int op = 0; op < instance.count; ++op) {
    if (instance.workspace[op] == 0) continue;
    std::vector<Word> set(words);
    close(set, op);
    found.at(set).workspace_op = op;
  }
  std::vector<Word> full(words);
  for (int op = 0; op < instance.count; ++op) insert(full.data(), op);
  found.at(full);

  std::vector<int> by_size(found.list.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  auto members = [&](int i) { return size(found.sets[i].data(), width); };
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return members(a) < members(b); });
  sets = Table(int(by_size.size()), words);
  for (int i : by_size) {
    std::copy(found.sets[i].begin(), found.sets[i].end(), sets[int(list.size())]);
    Closure& closure = found.list[i];
    std::sort(closure.takers.begin(), closure.takers.end());
    closure.takers.erase(std::unique(closure.takers.begin(), closure.takers.end()),
                         closure.takers.end());
    list.push_back(std::move(closure));
  }
}

// i dominates j if it is a proper subset that holds none of j's takers: as long as i is
// incomplete, i \ S is a move that makes j \ S superfluous (docs/search.md, R1).
void Closures::find_covers() {
  const Width<0> width{words};
  closure_words = words_for(count());
  Table below(count(), closure_words);
  std::vector<Word> known(closure_words);
  for (int j = 0; j < count(); ++j) {
    std::fill(known.begin(), known.end(), 0);
    for (int i = j - 1; i >= 0; --i) {
      if (test(known.data(), i) || !subset(sets[i], sets[j], width)) continue;
      for (int k = 0; k < closure_words; ++k) below[j][k] |= below[i][k];
      insert(below[j], i);
      const auto& takers = list[j].takers;
      if (std::any_of(takers.begin(), takers.end(), [&](int op) { return test(sets[i], op); }))
        continue;
      for (int k = 0; k < closure_words; ++k) known[k] |= below[i][k];
      insert(known.data(), i);
      list[j].covers.push_back(i);
      list[i].covered.push_back(j);
    }
  }
}

}  // namespace schedule
