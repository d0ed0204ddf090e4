import type { Kubelet } from '../../../src/kubelet/index.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import { containerOf, isSidecar } from '../sketch.ts';
import type { Rule, Scene } from './scene.ts';

/** Tolerance for rounding: the kubelet sends grace periods to the runtime in whole seconds. */
const roundingMs = 1_000;
/** The kubelet gives every container at least this grace. */
const minimumGraceSeconds = 2;

interface Order {
  readonly deadlineMs: number;
  /**
   * The earliest allowed deadline: a kubelet that continues a termination with unknown start sends
   * the full grace, rounded up.
   */
  readonly dueMs: number;
  /**
   * Whether the whole pod was terminating at every stop request; the next kubelet must then
   * continue the termination.
   */
  readonly ofPod: boolean;
  readonly by: Kubelet | undefined;
}

/**
 * The deadlines after the wall clock was set: the start of a termination is then unknown, because
 * only the wall clock recorded it.
 */
const unknownSince = { deadlineMs: Number.POSITIVE_INFINITY, dueMs: Number.NEGATIVE_INFINITY } as const;

export function graceOnlyShrinks({ runtime, report, desk, nowMs, kubelet }: Scene): Rule {
  const orders = new Map<string, Order>();
  const compare = (id: string, before: Order, deadlineMs: number, timeout: bigint) => {
    const moreMs = deadlineMs - before.deadlineMs;
    if (moreMs > roundingMs && timeout > minimumGraceSeconds)
      report('grace only shrinks', `${id} was given ${moreMs / 1_000} s more`);
    const lessMs = before.dueMs - deadlineMs;
    if (lessMs > 1 && before.by !== kubelet())
      report('a restart takes no grace away', `${id} was given ${lessMs / 1_000} s less`);
  };
  return {
    kubeletStarted() {
      for (const [id, { ofPod }] of orders) if (!ofPod) orders.delete(id);
    },
    clockJumped() {
      for (const [id, order] of orders) orders.set(id, { ...order, ...unknownSince });
    },
    calling(method, request) {
      if (method !== 'stopContainer') return;
      const { containerId, timeout } = request as { containerId: string; timeout: bigint };
      const uid = runtime.containers().find(({ id }) => id === containerId)?.podUid;
      const before = orders.get(containerId);
      const deadlineMs = nowMs() + Number(timeout) * 1_000;
      if (before !== undefined) compare(containerId, before, deadlineMs, timeout);
      // A container that waits for its hook or for other containers gets its first stop call later,
      // with the remaining grace rounded up.
      const sketch = desk.known(uid ?? '');
      const container = runtime.containers().find(({ id }) => id === containerId)?.name ?? '';
      const sketched = containerOf(sketch, container);
      const waits = sketched !== undefined && (sketched.preStop !== undefined || isSidecar(sketched));
      const isWhole = !waits && timeout >= (sketch?.graceSeconds ?? 0);
      const firstDueMs = isWhole ? deadlineMs : deadlineMs - roundingMs;
      const isExact = before === undefined || before.deadlineMs !== unknownSince.deadlineMs;
      const by = kubelet();
      const isOfPod = by?.control.workers.queries.isPodTerminationRequested(uid as PodUid) ?? false;
      orders.set(containerId, {
        deadlineMs: Math.min(before?.deadlineMs ?? Number.POSITIVE_INFINITY, deadlineMs),
        dueMs: isExact ? Math.min(before?.dueMs ?? firstDueMs, deadlineMs) : deadlineMs - roundingMs,
        ofPod: isOfPod && before?.ofPod !== false,
        by,
      });
      const grace = Math.max(
        minimumGraceSeconds,
        desk.known(uid ?? '')?.graceSeconds ?? Number.POSITIVE_INFINITY,
      );
      if (timeout > grace) report('grace is what the manifest says', `${containerId}: ${timeout} s`);
    },
    entry(entry) {
      if (entry.kind === 'container-removed') orders.delete(entry.id);
    },
  };
}
