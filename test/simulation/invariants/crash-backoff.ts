import { settings } from '../kubelet-life.ts';
import type { Instance } from './ledger.ts';
import type { Rule, RuleScene } from './scene.ts';

const firstMs = 10_000;
const resetMs = 10 * 60_000;
/**
 * Tolerance for rounding: the runtime reports finish times in nanoseconds, the kubelet calculates
 * in milliseconds.
 */
const roundingMs = 2;

interface Crashes {
  /**
   * The number of restarts after the container exited by itself, counted since it last ran long
   * enough to reset the back-off.
   */
  readonly restarts: number;
  readonly last: Instance;
}

/**
 * A container that exits by itself is restarted immediately the first time, then after 10 s, and
 * each time after twice as long.
 */
export function crashBackoffHolds(scene: RuleScene): Rule {
  const { report, desk, ledger, nowMs, maxRestartWaitMs = settings.maxRestartWaitMs } = scene;
  const crashes = new Map<string, Crashes>();
  const waitMs = (restarts: number) =>
    restarts === 0 ? 0 : Math.min(firstMs * 2 ** (restarts - 1), maxRestartWaitMs);
  /**
   * The number of restarts that determines the back-off of this instance; undefined if no back-off
   * applies.
   */
  const before = (instance: Instance): number | undefined => {
    const known = crashes.get(keyOf(instance));
    const ended = known?.last.ended;
    if (known === undefined || ended === undefined || known.last.stopOrderedMs !== undefined)
      return undefined;
    if (known.last.removed || !desk.wantedSince(instance.podUid, known.last.startedMs ?? 0)) return undefined;
    const ranMs = ended.atMs - (known.last.startedMs ?? 0);
    return ranMs > resetMs ? 0 : known.restarts;
  };
  return {
    clockJumped: () => crashes.clear(),
    runtimeLost: () => crashes.clear(),
    edited(uid) {
      for (const [key, { last }] of crashes) if (last.podUid === uid) crashes.delete(key);
    },
    entry(entry) {
      if (entry.kind !== 'container-started') return;
      const instance = ledger.find(entry.id);
      if (instance === undefined) return;
      const key = keyOf(instance);
      const known = crashes.get(key);
      const restarts = before(instance);
      if (restarts !== undefined && known?.last.ended !== undefined) {
        const waitedMs = nowMs() - known.last.ended.atMs;
        const what = `${entry.name} #${entry.attempt} of ${entry.podUid} after ${waitedMs} ms, not ${waitMs(restarts)}`;
        if (waitedMs + roundingMs < waitMs(restarts)) report('no back-off is shorter than the curve', what);
      }
      crashes.set(key, { restarts: restarts === undefined ? kept(known) : restarts + 1, last: instance });
    },
  };

  /**
   * The restart count for the next instance: exits that were requested, or are no longer recorded,
   * do not increase it.
   */
  function kept(known: Crashes | undefined): number {
    const isSame = known !== undefined && desk.wantedSince(known.last.podUid, known.last.startedMs ?? 0);
    const { ended, startedMs = 0 } = known?.last ?? {};
    const ranLong = ended !== undefined && ended.atMs - startedMs > resetMs;
    return isSame && !ranLong ? known.restarts : 0;
  }
}

/**
 * Identifies a container; init containers also by sandbox, because in a new sandbox they start from
 * the first again.
 */
function keyOf({ podUid, name, sandboxId }: Instance): string {
  return name.startsWith('init') ? `${podUid} ${sandboxId} ${name}` : `${podUid} ${name}`;
}
