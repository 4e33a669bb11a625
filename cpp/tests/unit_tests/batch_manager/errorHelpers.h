// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file errorHelpers.h
//! Checks what an error says.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace tensorrt_llm::batch_manager::testing
{

//! Whether \p error says each of \p parts, for BOOST_CHECK_EXCEPTION.
inline auto says(std::vector<std::string> parts)
{
    return [parts = std::move(parts)](KvCacheError const& error)
    {
        std::string const text = error.what();
        for (auto const& part : parts)
        {
            BOOST_TEST_CONTEXT("\"" << text << "\" says \"" << part << "\"")
            {
                BOOST_TEST((text.find(part) != std::string::npos));
            }
        }
        return true;
    };
}

} // namespace tensorrt_llm::batch_manager::testing
