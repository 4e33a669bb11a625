// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file linkedList.h
//! A list of numbered records that hold the links themselves, so that entering and leaving it takes no memory.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

namespace tensorrt_llm::batch_manager
{

//! Part of a record that may be on one list at a time; kNoBlock at an end of the list, and any value while on none.
struct ListLinks
{
    BlockId previous;
    BlockId next;
};

//! The ends of a list. \p linksOf gives the ListLinks of the record with a number; the list does not know the records.
class LinkedList
{
public:
    [[nodiscard]] bool empty() const
    {
        return mFirst == kNoBlock;
    }

    [[nodiscard]] BlockId first() const
    {
        return mFirst;
    }

    [[nodiscard]] BlockId last() const
    {
        return mLast;
    }

    [[nodiscard]] BlockId size() const
    {
        return mSize;
    }

    //! \param id of a record on no list
    template <typename LinksOf>
    void pushFront(BlockId id, LinksOf const& linksOf)
    {
        linksOf(id) = {kNoBlock, mFirst};
        (empty() ? mLast : linksOf(mFirst).previous) = id;
        mFirst = id;
        ++mSize;
    }

    //! \param id of a record on no list
    template <typename LinksOf>
    void pushBack(BlockId id, LinksOf const& linksOf)
    {
        linksOf(id) = {mLast, kNoBlock};
        (empty() ? mFirst : linksOf(mLast).next) = id;
        mLast = id;
        ++mSize;
    }

    //! \param id of a record on this list
    template <typename LinksOf>
    void remove(BlockId id, LinksOf const& linksOf)
    {
        auto const links = linksOf(id);
        (links.previous == kNoBlock ? mFirst : linksOf(links.previous).next) = links.next;
        (links.next == kNoBlock ? mLast : linksOf(links.next).previous) = links.previous;
        --mSize;
    }

private:
    BlockId mFirst{kNoBlock};
    BlockId mLast{kNoBlock};
    BlockId mSize{0};
};

} // namespace tensorrt_llm::batch_manager
