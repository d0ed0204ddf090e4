import type { Kubelet } from '../../src/kubelet/index.ts';
import type { PodUid } from '../../src/pods/index.ts';
import type { SimulatedRuntime, TraceEntry } from '../../src/simulator/index.ts';
import type { Desk } from './desk.ts';
import type { KubeletLife } from './kubelet-life.ts';

/** What a rule sees of the world. */
export interface Scene {
  readonly desk: Desk;
  readonly runtime: SimulatedRuntime;
  readonly nowMs: () => number;
  readonly kubelet: () => Kubelet | undefined;
  /** Whether the runtime has been, or is, in such trouble that a pod may have to be made anew. */
  readonly isDamaged: (podUid: string) => boolean;
  /** Whether calls may have had effects that their callers do not know of. */
  readonly isUncertain: () => boolean;
  readonly report: (rule: string, what: string) => void;
}

/** Something that must hold at every moment. Called at once, before anything else happens. */
export interface Rule {
  entry?(entry: TraceEntry): void;
  calling?(method: string, request: unknown): void;
  kubeletStarted?(life: KubeletLife): void;
  /** Nobody can tell any more how long ago something was that only the wall clock knew. */
  clockJumped?(): void;
}

export function allRules(scene: Scene): readonly Rule[] {
  return [
    oneOfEachContainer(scene),
    oneOfEachName(scene),
    startsOnlyWhatIsWanted(scene),
    stopsOnlyWhatIsUnwanted(scene),
    graceOnlyShrinks(scene),
    terminalPhaseStays(scene),
  ];
}

function oneOfEachContainer({ runtime, report, isUncertain }: Scene): Rule {
  return {
    entry(entry) {
      if (entry.kind !== 'container-started') return;
      const { podUid, name, attempt, id } = entry;
      const others = runtime
        .runningContainers()
        .filter((other) => other.id !== id && other.podUid === podUid && other.name === name)
        .filter((other) => !isUncertain() || other.attempt === attempt);
      for (const other of others) {
        const what = `${name} #${attempt} of ${podUid} started while #${other.attempt} runs`;
        report('at most one running container of a name in a pod', what);
      }
    },
  };
}

/** Pods of one name that one kubelet knew never overlap; one left by an earlier kubelet may still be on its way out. */
function oneOfEachName({ runtime, report, kubelet, isUncertain }: Scene): Rule {
  let known = new Set<string>();
  return {
    kubeletStarted() {
      known = new Set();
    },
    entry(entry) {
      const now = kubelet();
      for (const { metadata } of now?.pods.getPods() ?? [])
        if (now?.workers.queries.isPodTerminationRequested(metadata.uid) === false) known.add(metadata.uid);
      if (entry.kind !== 'container-started' || isUncertain()) return;
      const nameOf = new Map(runtime.sandboxes().map(({ podUid, podName }) => [podUid, podName]));
      const name = nameOf.get(entry.podUid);
      const others = runtime
        .runningContainers()
        .filter(({ podUid }) => podUid !== entry.podUid && nameOf.get(podUid) === name && known.has(podUid));
      for (const other of others) {
        const what = `${entry.podUid} of ${name} started while ${other.podUid} still runs`;
        report('static pods of one name do not overlap', what);
      }
    },
  };
}

interface StartRequest {
  readonly containerId?: string;
  readonly podSandboxId?: string;
  readonly config?: { readonly metadata?: { readonly uid?: string } };
}

function startsOnlyWhatIsWanted({ runtime, report, kubelet }: Scene): Rule {
  const uidOf = (method: string, { containerId, podSandboxId, config }: StartRequest) => {
    if (method === 'runPodSandbox') return config?.metadata?.uid;
    if (method === 'createContainer')
      return runtime.sandboxes().find(({ id }) => id === podSandboxId)?.podUid;
    if (method === 'startContainer') return runtime.containers().find(({ id }) => id === containerId)?.podUid;
    return undefined;
  };
  return {
    calling(method, request) {
      const uid = uidOf(method, request as StartRequest) as PodUid | undefined;
      const now = kubelet();
      if (uid === undefined || now === undefined) return;
      if (now.workers.queries.isPodTerminationRequested(uid))
        report('nothing starts after termination was requested', `${method} of ${uid}`);
      if (now.pods.getPodByUid(uid) === undefined)
        report('nothing starts after its manifest was seen to be gone', `${method} of ${uid}`);
    },
  };
}

function stopsOnlyWhatIsUnwanted({ runtime, report, desk, nowMs, isDamaged, kubelet }: Scene): Rule {
  const startedMs = new Map<string, number>();
  const isPastDeadline = (uid: string) =>
    desk.known(uid)?.deadlineSeconds !== undefined &&
    kubelet()?.statuses.getPodStatus(uid as PodUid)?.phase === 'Failed';
  return {
    entry(entry) {
      if (entry.kind === 'container-started') startedMs.set(entry.id, nowMs());
      if (entry.kind === 'container-removed') startedMs.delete(entry.id);
      if (entry.kind !== 'container-signalled' || isDamaged(entry.podUid)) return;
      const { id, podUid, name, attempt } = entry;
      if (!desk.wantedSince(podUid, startedMs.get(id) ?? 0) || isPastDeadline(podUid)) return;
      const hasTwin = runtime
        .runningContainers()
        .some((other) => other.id !== id && other.podUid === podUid && other.name === name);
      if (!hasTwin) report('nothing stops that its manifest asks for', `${name} #${attempt} of ${podUid}`);
    },
  };
}

/** Whole seconds are told to the runtime, so that one that has begun counts twice. */
const roundingMs = 1_000;
/** What every container is given at least. */
const minimumGraceSeconds = 2;

interface Order {
  readonly deadlineMs: number;
  /** What it must have at least: a kubelet that goes on with an order of unknown beginning tells it rounded up. */
  readonly dueMs: number;
  /** Whether it was the whole pod that was to end, from the first order on: that the next kubelet must know. */
  readonly ofPod: boolean;
  readonly by: Kubelet | undefined;
}

/** Of an order whose beginning only the wall clock knew, which was set since. */
const unknownSince = { deadlineMs: Number.POSITIVE_INFINITY, dueMs: Number.NEGATIVE_INFINITY } as const;

function graceOnlyShrinks({ runtime, report, desk, nowMs, kubelet }: Scene): Rule {
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
      const isExact = before === undefined || before.deadlineMs !== unknownSince.deadlineMs;
      const by = kubelet();
      const isOfPod = by?.workers.queries.isPodTerminationRequested(uid as PodUid) ?? false;
      orders.set(containerId, {
        deadlineMs: Math.min(before?.deadlineMs ?? Number.POSITIVE_INFINITY, deadlineMs),
        dueMs: isExact ? Math.min(before?.dueMs ?? deadlineMs, deadlineMs) : deadlineMs - roundingMs,
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

/** After this long a kubelet has noted what it saw. */
const notedMs = 6_000;

interface Ended {
  readonly phase: string;
  readonly atMs: number;
  /** Whether it was noted, so that the next kubelet knows it whatever the runtime says. */
  readonly isNoted: boolean;
}

/** For as long as the pod is asked for, across kubelets, unless the runtime forgets what ran before it was noted. */
function terminalPhaseStays({ report, desk, nowMs, isDamaged }: Scene): Rule {
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
      next.statuses.onChange(({ uid, after }) => {
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
