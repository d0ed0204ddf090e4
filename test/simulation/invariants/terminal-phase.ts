import type { Rule, Scene } from './scene.ts';

/** The time within which a kubelet writes a checkpoint of what it has observed. */
const notedMs = 6_000;

interface Ended {
  readonly phase: string;
  readonly atMs: number;
  /**
   * Whether the phase was checkpointed, so that the next kubelet restores it regardless of the
   * runtime.
   */
  readonly isNoted: boolean;
}

/**
 * The terminal phase of a desired pod never changes, also across kubelet restarts, unless the
 * runtime loses the containers before the checkpoint is written.
 */
export function terminalPhaseStays({ report, desk, nowMs, isDamaged }: Scene): Rule {
  const ended = new Map<string, Ended>();
  const begunMs = new Map<string, number>();
  let aliveMs = 0;
  const lasting = (uid: string) => {
    const before = ended.get(uid);
    if (before === undefined || !desk.wantedSince(uid, before.atMs)) return undefined;
    return isDamaged(uid) && !before.isNoted ? undefined : before;
  };
  return {
    calling() {
      aliveMs = nowMs();
    },
    entry(entry) {
      if (entry.kind === 'container-started' && lasting(entry.podUid) !== undefined)
        report('nothing starts in a pod that has ended', `${entry.name} of ${entry.podUid}`);
      if (entry.kind === 'sandbox-started') begunMs.set(entry.podUid, nowMs());
    },
    kubeletStarted({ kubelet: next }) {
      for (const [uid, one] of ended)
        ended.set(uid, { ...one, isNoted: one.isNoted || aliveMs - one.atMs > notedMs });
      next.state.statuses.onChange(({ uid, after }) => {
        const phase = after.phase ?? '';
        const before = lasting(uid);
        if (before !== undefined) {
          if (phase !== before.phase)
            report('a terminal phase stays', `${uid} was ${before.phase} and is ${phase}`);
          return;
        }
        // The pod may have been removed and added again since it terminated: then the observed
        // terminal phase belongs to the previous pod.
        const isOwnEnd = desk.wantedSince(uid, begunMs.get(uid) ?? 0);
        if (isOwnEnd && (phase === 'Succeeded' || phase === 'Failed'))
          ended.set(uid, { phase, atMs: nowMs(), isNoted: false });
        else ended.delete(uid);
      });
    },
  };
}
