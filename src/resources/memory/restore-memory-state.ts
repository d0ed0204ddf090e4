import type { RuntimePlacement } from '../cgroups/runtime-placement.ts';
import { type Claim, type Restored, restoreShares } from '../exclusive/restore-shares.ts';
import { decodeMemoryCheckpoint } from './memory-checkpoint.ts';
import { type MemoryBlock, type MemoryState, taken, withBlocks } from './memory-state.ts';
import type { StaticMemoryPolicy } from './static-memory-policy.ts';

type Blocks = readonly MemoryBlock[];

export async function restoreMemoryState(
  text: string | undefined,
  policy: StaticMemoryPolicy,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<Restored<MemoryState>> {
  const how = {
    policyName: 'Static',
    initialState: policy.initialState,
    decode: decodeMemoryCheckpoint,
    isBegun: ({ machine }: MemoryState) => machine.size > 0,
    problemOf: (state: MemoryState) => policy.problemOf(state),
    seenIn,
    grant,
  };
  return await restoreShares(text, how, fromRuntime);
}

/** Only who has memory of his own is bound to NUMA nodes. */
function seenIn({ mems, memory }: RuntimePlacement): Blocks | undefined {
  const numaAffinity = [...mems].toSorted((one, other) => one - other);
  const blocks = [...memory].flatMap(([type, size]) => (size > 0 ? [{ numaAffinity, type, size }] : []));
  return mems.size === 0 || blocks.length === 0 ? undefined : blocks;
}

function grant(state: MemoryState, { uid, container, share }: Claim<Blocks>): MemoryState {
  if (!share.every((block) => isThere(state, block))) return state;
  const machine = share.reduce((before, block) => taken(before, block), state.machine);
  return withBlocks({ machine, assignments: state.assignments }, uid, container, share);
}

function isThere({ machine }: MemoryState, { numaAffinity, type, size }: MemoryBlock): boolean {
  const tables = numaAffinity.map((id) => machine.get(id)?.memoryMap.get(type));
  return !tables.includes(undefined) && tables.reduce((sum, table) => sum + (table?.free ?? 0), 0) >= size;
}
