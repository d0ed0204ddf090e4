import type { Rule, Scene } from './scene.ts';

/** After this long a kubelet has noted what it saw. */
const notedMs = 6_000;

interface Ended {
  readonly phase: string;
  readonly atMs: number;
  /** Whether it was noted, so that the next kubelet knows it whatever the runtime says. */
  readonly isNoted: boolean;
}

/** For as long as the pod is asked for, across kubelets, unless the runtime forgets what ran before it was noted. */
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
        // A pod that was told to end may be wanted again by now: the end is not the one of what is wanted.
        const isOwnEnd = desk.wantedSince(uid, begunMs.get(uid) ?? 0);
        if (isOwnEnd && (phase === 'Succeeded' || phase === 'Failed'))
          ended.set(uid, { phase, atMs: nowMs(), isNoted: false });
        else ended.delete(uid);
      });
    },
  };
}
