// sinter/nn/members.hpp: SINTER_MEMBERS, the one line that lists the members of a module.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "sinter/nn/member.hpp"

namespace sinter {

// Names in messages.
template <class>
struct members_missing_in_the_list_of;
template <class>
struct no_list_of_the_members_of;
struct name_them_all_in_SINTER_MEMBERS_or_write_visit_by_hand;

namespace nn::detail {

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t align) { return (bytes + align - 1) / align * align; }

/// Sums up types of members: how many bytes they take in a module aligned to Align.
template <std::size_t Bytes, std::size_t Align>
struct bytes_of_members {
  static constexpr std::size_t bytes = Bytes;
};
template <std::size_t Bytes, std::size_t Align, class X>
bytes_of_members<Bytes + rounded_up(sizeof(X), Align), Align> operator+(bytes_of_members<Bytes, Align>,
                                                                        std::type_identity<X>);

/// False only if M holds more than what its line lists: no order of the members takes more room than each of them
/// rounded up to the alignment of M.
template <class M>
constexpr bool lists_all_members() {
  if constexpr (requires { M::template fold_types<bytes_of_members<0, alignof(M)>, M>(); })
    return sizeof(M) <= rounded_up(decltype(M::template fold_types<bytes_of_members<0, alignof(M)>, M>())::bytes +
                                       (std::is_polymorphic_v<M> ? sizeof(void*) : 0) + (std::is_empty_v<M> ? 1 : 0),
                                   alignof(M));
  else return true;
}

template <class M, class Problem = members_missing_in_the_list_of<M>,
          class Fix = name_them_all_in_SINTER_MEMBERS_or_write_visit_by_hand>
  requires(!lists_all_members<M>())
constexpr void check_list() = delete;

template <class M>
  requires(has_list<M> && lists_all_members<M>())
constexpr void check_list() {}
template <class M, class Problem = no_list_of_the_members_of<M>,
          class Fix = name_them_all_in_SINTER_MEMBERS_or_write_visit_by_hand>
  requires(!has_list<M>)
constexpr void check_list() = delete;

}  // namespace nn::detail
}  // namespace sinter

/// Lists the members of a module, up to 256, in the order of named_parameters(): parameters, buffers, submodules,
/// nn::mode and settings. It is the module's visit(). A member that is left out does not compile, as far as the size of
/// the module tells: one that fits between others, such as a bool beside an int, goes unseen.
///
///     SINTER_MEMBERS(fc, scale)
#define SINTER_MEMBERS(...)                                                                              \
  template <class SinterVisitor, class... SinterModule>                                                  \
  static void visit([[maybe_unused]] SinterVisitor&& sinter_visitor,                                     \
                    [[maybe_unused]] SinterModule&... sinter_module) {                                   \
    __VA_OPT__(SINTER_DETAIL_EXPAND(SINTER_DETAIL_VISIT_EACH(__VA_ARGS__)))                              \
  }                                                                                                      \
  template <class SinterFold, class SinterModule>                                                        \
  static auto fold_types()                                                                               \
      -> decltype(SinterFold {} __VA_OPT__(SINTER_DETAIL_EXPAND(SINTER_DETAIL_TYPE_EACH(__VA_ARGS__)))); \
  static_assert(true)

#define SINTER_DETAIL_VISIT_EACH(member, ...)       \
  sinter_visitor(#member, sinter_module.member...); \
  __VA_OPT__(SINTER_DETAIL_VISIT_AGAIN SINTER_DETAIL_PARENTHESES(__VA_ARGS__))
#define SINTER_DETAIL_VISIT_AGAIN() SINTER_DETAIL_VISIT_EACH
#define SINTER_DETAIL_TYPE_EACH(member, ...)                                \
  +::std::type_identity<decltype(::std::declval<SinterModule&>().member)> { \
  }                                                                         \
  __VA_OPT__(SINTER_DETAIL_TYPE_AGAIN SINTER_DETAIL_PARENTHESES(__VA_ARGS__))
#define SINTER_DETAIL_TYPE_AGAIN() SINTER_DETAIL_TYPE_EACH
#define SINTER_DETAIL_PARENTHESES ()
// Each level expands four times as often as the one below it.
#define SINTER_DETAIL_EXPAND(...) \
  SINTER_DETAIL_EXPAND64(SINTER_DETAIL_EXPAND64(SINTER_DETAIL_EXPAND64(SINTER_DETAIL_EXPAND64(__VA_ARGS__))))
#define SINTER_DETAIL_EXPAND64(...) \
  SINTER_DETAIL_EXPAND16(SINTER_DETAIL_EXPAND16(SINTER_DETAIL_EXPAND16(SINTER_DETAIL_EXPAND16(__VA_ARGS__))))
#define SINTER_DETAIL_EXPAND16(...) \
  SINTER_DETAIL_EXPAND4(SINTER_DETAIL_EXPAND4(SINTER_DETAIL_EXPAND4(SINTER_DETAIL_EXPAND4(__VA_ARGS__))))
#define SINTER_DETAIL_EXPAND4(...) \
  SINTER_DETAIL_EXPAND1(SINTER_DETAIL_EXPAND1(SINTER_DETAIL_EXPAND1(SINTER_DETAIL_EXPAND1(__VA_ARGS__))))
#define SINTER_DETAIL_EXPAND1(...) __VA_ARGS__
