// Chooses the template for the number of words.
#pragma once

#include <type_traits>

namespace schedule {

template <class Run>
auto with_width(int words, Run run) {
  switch (words) {
    case 1: return run(std::integral_constant<int, 1>{});
    case 2: return run(std::integral_constant<int, 2>{});
    case 3: return run(std::integral_constant<int, 3>{});
    case 4: return run(std::integral_constant<int, 4>{});
    default: return run(std::integral_constant<int, 0>{});
  }
}

}  // namespace schedule
