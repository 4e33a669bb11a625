// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file checks.h
//! The words of errors, for the sources of this folder.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

#include <cstdint>
#include <string>
#include <type_traits>

namespace tensorrt_llm::batch_manager
{

inline std::string nameOfSequence(SequenceId id)
{
    return "sequence " + std::to_string(id);
}

//! \param what the words, or a function that makes them where they are only wanted if the numbers differ.
//! \throws InternalStateError with both numbers.
template <typename What>
void expectEqual(What const& what, std::int64_t found, std::int64_t expected)
{
    if (found == expected)
    {
        return;
    }
    std::string text;
    if constexpr (std::is_invocable_v<What const&>)
    {
        text = what();
    }
    else
    {
        text = what;
    }
    throw InternalStateError(text + ": " + std::to_string(found) + ", expected " + std::to_string(expected));
}

} // namespace tensorrt_llm::batch_manager
