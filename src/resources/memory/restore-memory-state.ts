import { describeError } from '../../lib/index.ts';
import type { RuntimePlacement } from '../runtime-placement.ts';
import { decodeMemoryCheckpoint, type MemoryCheckpoint } from './memory-checkpoint.ts';
import { type MemoryBlock, type MemoryState, taken, withBlocks } from './memory-state.ts';
import type { StaticMemoryPolicy } from './static-memory-policy.ts';

export interface RestoredMemory {
  readonly state: MemoryState;
  /** Why the checkpoint was not good as it was. */
  readonly mended?: string;
}

/** As for processors: no checkpoint is a reason not to start; where memory was given out, the runtime tells to whom. */
export async function restoreMemoryState(
  text: string | undefined,
  policy: StaticMemoryPolicy,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<RestoredMemory> {
  if (text === undefined) return { state: policy.initialState };
  const read = tryDecode(text);
  const why = 'why' in read ? read.why : problemOf(read, policy);
  if (why === undefined && 'state' in read)
    return { state: read.state.machine.size === 0 ? policy.initialState : read.state };
  const isEmpty = 'state' in read && read.state.assignments.size === 0;
  if (isEmpty) return { state: policy.initialState, mended: why ?? '' };
  return { state: rebuilt(policy, read, await fromRuntime()), mended: why ?? '' };
}

type Read = MemoryCheckpoint | { readonly why: string };

function tryDecode(text: string): Read {
  try {
    return decodeMemoryCheckpoint(text);
  } catch (error) {
    return { why: describeError(error) };
  }
}

function problemOf({ policyName, state }: MemoryCheckpoint, policy: StaticMemoryPolicy): string | undefined {
  if (policyName !== 'Static') return `it was written under the policy ${policyName}`;
  const isNew = state.machine.size === 0 && state.assignments.size === 0;
  return isNew ? undefined : policy.problemOf(state);
}

type Claim = Pick<RuntimePlacement, 'uid' | 'container'> & { readonly blocks: readonly MemoryBlock[] };

/** Of what was noted, or else is seen, as much as this machine has. */
function rebuilt(policy: StaticMemoryPolicy, read: Read, seen: readonly RuntimePlacement[]): MemoryState {
  const there = new Set(seen.map(({ uid }) => uid));
  const noted = 'state' in read && read.policyName === 'Static' ? read.state.assignments : undefined;
  const claims: readonly Claim[] =
    noted === undefined
      ? seen.flatMap(asClaim)
      : [...noted].flatMap(([uid, own]) =>
          [...own].map(([container, blocks]) => ({ uid, container, blocks })),
        );
  return claims.reduce((state, { uid, container, blocks }) => {
    if (!there.has(uid) || !blocks.every((block) => isThere(state, block))) return state;
    const machine = blocks.reduce((before, block) => taken(before, block), state.machine);
    return withBlocks({ machine, assignments: state.assignments }, uid, container, blocks);
  }, policy.initialState);
}

/** Only who has memory of his own is bound to NUMA nodes. */
function asClaim({ uid, container, mems, memory }: RuntimePlacement): readonly Claim[] {
  const numaAffinity = [...mems].toSorted((one, other) => one - other);
  const blocks = [...memory].flatMap(([type, size]) => (size > 0 ? [{ numaAffinity, type, size }] : []));
  return mems.size === 0 || blocks.length === 0 ? [] : [{ uid, container, blocks }];
}

function isThere({ machine }: MemoryState, { numaAffinity, type, size }: MemoryBlock): boolean {
  const tables = numaAffinity.map((id) => machine.get(id)?.memoryMap.get(type));
  return !tables.includes(undefined) && tables.reduce((sum, table) => sum + (table?.free ?? 0), 0) >= size;
}
