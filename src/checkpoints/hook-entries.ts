import type { Clock } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import type { HookCheckpoint } from '../runtime/index.ts';
import { type CheckpointEntry, type TerminationEntry, terminationMsLeft } from './checkpoint-entry.ts';

export interface HookEntriesDeps {
  readonly clock: Clock;
  readonly get: (uid: PodUid) => CheckpointEntry | undefined;
  readonly change: (uid: PodUid, change: (entry: CheckpointEntry) => CheckpointEntry) => Promise<void>;
}

/**
 * The maximum number of entries per kind of hook. Entries of containers that exited while no
 * kubelet was running are never removed otherwise.
 */
const mostOfAKind = 32;

/** Tracks the hook progress of a pod's containers in its checkpoint entry. */
export function hookEntries({ clock, get, change }: HookEntriesDeps): HookCheckpoint {
  return {
    recordPostStart: ({ metadata }, containerId) =>
      change(metadata.uid, (entry) => {
        const due = [...withoutPostStart(entry, containerId), containerId];
        return { ...entry, postStarts: due.slice(-mostOfAKind) };
      }),
    clearPostStart: ({ metadata }, containerId) =>
      change(metadata.uid, ({ postStarts = [], ...notes }) => {
        const left = withoutPostStart({ postStarts }, containerId);
        return left.length === 0 ? notes : { ...notes, postStarts: left };
      }),
    pendingPostStarts: (uid) => get(uid)?.postStarts ?? [],
    recordPreStop: ({ metadata }, containerId, graceSeconds) =>
      change(metadata.uid, (entry) =>
        withPreStop(entry, containerId, { sinceMs: clock.now(), graceSeconds }),
      ),
    startedPreStop: (uid, containerId) => {
      const begun = get(uid)?.preStops?.[containerId];
      if (begun === undefined) return undefined;
      const nowMs = clock.now();
      return { usedMs: Math.max(0, nowMs - begun.sinceMs), msLeft: terminationMsLeft(begun, nowMs) };
    },
    containerStopped: ({ metadata }, containerId) =>
      change(metadata.uid, (entry) => withoutPreStop(entry, containerId)),
  };
}

function withoutPostStart(
  { postStarts = [] }: Pick<CheckpointEntry, 'postStarts'>,
  containerId: string,
): readonly string[] {
  return postStarts.filter((id) => id !== containerId);
}

function withPreStop(entry: CheckpointEntry, containerId: string, begun: TerminationEntry): CheckpointEntry {
  const others = Object.entries(entry.preStops ?? {}).filter(([id]) => id !== containerId);
  const kept = others.slice(Math.max(0, others.length - mostOfAKind + 1));
  return { ...entry, preStops: Object.fromEntries([...kept, [containerId, begun]]) };
}

function withoutPreStop({ preStops = {}, ...notes }: CheckpointEntry, containerId: string): CheckpointEntry {
  const { [containerId]: _over, ...left } = preStops;
  return Object.keys(left).length === 0 ? notes : { ...notes, preStops: left };
}
