import { stat } from 'node:fs/promises';
import {
  busyboxImageName,
  containerdLayout,
  findRuntimeSockets,
  type PrivateContainerd,
} from '../../containerd/index.ts';
import type { CriClient, CriObserver } from '../../cri/index.ts';
import { describeError, KubelingError, withDeadline } from '../../lib/index.ts';
import { selfCheck } from '../../runtime/index.ts';
import type { CommandContext } from '../command.ts';
import { type PrintStatus, statusPrinter } from '../command.ts';
import {
  type DataDirectory,
  previousEndpoints,
  type UpState,
  writeUpState,
} from '../data-directory/data-directory.ts';
import {
  connectRuntime,
  dataDirectoryCgroup,
  findOtherPods,
  onlyOwnPods,
  privateContainerd,
} from '../data-directory/runtime.ts';

/** The runtime that `kubeling up` has chosen and connected to. */
export interface ChosenRuntime {
  readonly state: UpState;
  readonly name: string;
  readonly version: string;
  /**
   * The private containerd, which kubeling starts, restarts and stops; undefined for any other
   * runtime.
   */
  readonly own: PrivateContainerd | undefined;
  /** The client for all pods of the runtime, including those of other data directories. */
  readonly unfiltered: CriClient;
  /** The client for the pods of this data directory. */
  readonly cri: CriClient;
  /** Whether the self-check must still run; a runtime found by a search has already passed it. */
  readonly selfCheck: 'passed' | 'due';
}

export interface RuntimeChoice {
  readonly directory: DataDirectory;
  /** The value of the flag --runtime-endpoint. */
  readonly requested: string | undefined;
  /** The state saved by the previous "up" in this data directory; undefined at the first start. */
  readonly last: UpState | undefined;
  /** Observes the calls to the runtime. */
  readonly observer: CriObserver;
}

interface Candidate {
  readonly endpoint: string;
  readonly origin: string;
  readonly own?: PrivateContainerd;
  readonly selfCheck: 'first' | 'later';
}

/** The path of a static busybox, as installed by Debian's busybox-static. */
const busyboxProgram = '/bin/busybox';
const runtimeDeadlineMs = 10_000;
/** How long to wait for a runtime that was used before: at boot it may start after kubeling. */
const returnsWithinMs = 120_000;
const returnPollMs = 500;

/**
 * Chooses the requested runtime, or else the one with the pods of this data directory: its private
 * containerd, or the runtime used before. Only the first start searches for an installed runtime,
 * and uses a runtime that can run a pod.
 */
export async function chooseRuntime(choice: RuntimeChoice, context: CommandContext): Promise<ChosenRuntime> {
  const { directory, requested, last } = choice;
  if (requested === 'private') return await usePrivateContainerd(choice, context);
  if (requested !== undefined) {
    const candidate = {
      endpoint: requested,
      origin: `requested at ${requested}`,
      selfCheck: 'later',
    } as const;
    return await connect(candidate, choice, context);
  }
  if (await hasPrivateContainerd(directory)) {
    await reportUnused(choice, context);
    return await usePrivateContainerd(choice, context);
  }
  if (last?.runtime === 'machine' && last.selfCheck === 'passed')
    return await reuseRuntime(last.endpoint, choice, context);
  return (await useInstalled(choice, context)) ?? (await usePrivateContainerd(choice, context));
}

async function hasPrivateContainerd({ dataDir }: DataDirectory): Promise<boolean> {
  const { instanceFile, root } = containerdLayout(dataDir);
  const found = await Promise.all([instanceFile, root].map((path) => stat(path).catch(() => undefined)));
  return found.some((entry) => entry !== undefined);
}

async function usePrivateContainerd(choice: RuntimeChoice, context: CommandContext): Promise<ChosenRuntime> {
  const own = await privateContainerd(choice.directory, context);
  const running = await own.ensureRunning(context.signal);
  const images = await own.images();
  if (!(await images.has(busyboxImageName, context.signal)))
    await images.importBusybox(busyboxProgram, context.signal);
  const { pid, subnet, network, socket } = running;
  const origin = `private, ${running.origin}, process ${pid}, pods in ${subnet} on ${network}`;
  return await connect({ endpoint: `unix://${socket}`, origin, own, selfCheck: 'later' }, choice, context);
}

/**
 * Waits for the runtime used before, because another runtime would start every pod a second time.
 */
async function reuseRuntime(
  endpoint: string,
  choice: RuntimeChoice,
  context: CommandContext,
): Promise<ChosenRuntime> {
  const { clock, signal } = context;
  try {
    await withDeadline(
      { clock, ms: returnsWithinMs, what: `reach the runtime at ${endpoint}` },
      (inner) => waitForRuntime(endpoint, context, inner),
      signal,
    );
  } catch (cause) {
    signal.throwIfAborted();
    throw new KubelingError(
      'RUNTIME_AWAY',
      `Cannot use the container runtime at ${endpoint}, which has the pods of ${choice.directory.dataDir}: start it, or choose another one with --runtime-endpoint`,
      { cause },
    );
  }
  return await connect(
    { endpoint, origin: `used before at ${endpoint}`, selfCheck: 'later' },
    choice,
    context,
  );
}

async function waitForRuntime(endpoint: string, context: CommandContext, signal: AbortSignal): Promise<void> {
  const { clock } = context;
  const unfiltered = connectRuntime(endpoint, context);
  let isReported = false;
  try {
    for (;;) {
      const failure = await failureOf(async () => await checkReady(unfiltered, context, signal));
      if (failure === undefined) return;
      signal.throwIfAborted();
      if (!isReported)
        statusPrinter(context)('runtime', `waiting for the runtime at ${endpoint}: ${failure}`);
      isReported = true;
      await clock.sleep(returnPollMs, signal);
    }
  } finally {
    unfiltered.close();
  }
}

/** Returns the first installed runtime that can run a pod; undefined if there is none. */
async function useInstalled(
  choice: RuntimeChoice,
  context: CommandContext,
): Promise<ChosenRuntime | undefined> {
  const print = statusPrinter(context);
  for (const socket of await listeningSockets(context)) {
    const endpoint = `unix://${socket}`;
    const candidate = { endpoint, origin: `found at ${socket}`, selfCheck: 'first' } as const;
    const outcome = await connect(candidate, choice, context).catch(describeError);
    context.signal.throwIfAborted();
    if (typeof outcome !== 'string') return outcome;
    print('runtime', `the runtime found at ${socket} is not used, because it cannot run a pod: ${outcome}`);
    print('runtime', `to use it nevertheless, repair it and add --runtime-endpoint ${endpoint}`);
  }
  return undefined;
}

async function reportUnused({ directory }: RuntimeChoice, context: CommandContext): Promise<void> {
  const [socket] = await listeningSockets(context);
  if (socket === undefined) return;
  statusPrinter(context)(
    'runtime',
    `the runtime at ${socket} is not used, because ${directory.dataDir} has a private containerd; to use it nevertheless, add --runtime-endpoint unix://${socket}`,
  );
}

async function listeningSockets(context: CommandContext): Promise<readonly string[]> {
  const sockets = await findRuntimeSockets(context, context.signal);
  return sockets.flatMap(({ path, state }) => (state === 'accepting' ? [path] : []));
}

async function connect(
  candidate: Candidate,
  choice: RuntimeChoice,
  context: CommandContext,
): Promise<ChosenRuntime> {
  const { directory, last, observer } = choice;
  const { endpoint, origin, own } = candidate;
  const kind = own === undefined ? 'machine' : 'private';
  const unfiltered = connectRuntime(endpoint, context, observer);
  try {
    const cri = onlyOwnPods(unfiltered, { directory, unnamed: kind === 'private' ? 'ours' : 'of-others' });
    const { name, version } = await queryVersion(unfiltered, context);
    const state: UpState = { runtime: kind, endpoint, earlier: previousEndpoints(last, endpoint) };
    // The endpoint is saved only once the runtime responds, because "down" connects to every saved
    // runtime and fails if one does not exist.
    await writeUpState(directory, { ...state, api: last?.api, selfCheck: selfCheckBefore(last, endpoint) });
    statusPrinter(context)('runtime', `${name} ${version}, ${origin}`);
    await reportOtherPods(directory, state, unfiltered, context);
    const chosen = { state, name, version, own, unfiltered, cri, selfCheck: 'due' } as const;
    if (candidate.selfCheck === 'later') return chosen;
    await checkReady(unfiltered, context, context.signal);
    await checkRuntime(directory, cri, context);
    return { ...chosen, selfCheck: 'passed' };
  } catch (error) {
    unfiltered.close();
    throw error;
  }
}

/**
 * Returns whether the runtime ever passed the self-check: it may then have pods, even if the next
 * check fails.
 */
function selfCheckBefore(last: UpState | undefined, endpoint: string): UpState['selfCheck'] {
  return last?.endpoint === endpoint ? last.selfCheck : undefined;
}

async function queryVersion(cri: CriClient, { clock, signal }: CommandContext) {
  const version = await withDeadline(
    { clock, ms: runtimeDeadlineMs, what: 'get the version of the container runtime' },
    (inner) => cri.checkVersion(inner),
    signal,
  );
  return { name: version.runtimeName, version: version.runtimeVersion };
}

/** Rejects if the runtime or its network is not ready. */
async function checkReady(cri: CriClient, { clock }: CommandContext, signal: AbortSignal): Promise<void> {
  const { status } = await withDeadline(
    { clock, ms: runtimeDeadlineMs, what: 'get the status of the container runtime' },
    (inner) => cri.status({ verbose: false }, inner),
    signal,
  );
  const bad = (status?.conditions ?? []).filter((condition) => !condition.status);
  const required = bad.find(({ type }) => type === 'RuntimeReady' || type === 'NetworkReady');
  if (required === undefined) return;
  const { type, reason, message } = required;
  throw new KubelingError('RUNTIME_NOT_READY', `its condition ${type} is false: ${message} (${reason})`);
}

/**
 * Informs the user about runtimes used before that may still have pods of this data directory, and
 * about pods in the chosen runtime that belong to other data directories or other clients.
 */
async function reportOtherPods(
  directory: DataDirectory,
  { runtime, earlier = [] }: UpState,
  unfiltered: CriClient,
  context: CommandContext,
): Promise<void> {
  const print: PrintStatus = statusPrinter(context);
  for (const endpoint of earlier)
    print('runtime', `pods of an earlier run may still run at ${endpoint}; "kubeling down" stops them`);
  const { homes, unnamed } = await findOtherPods(unfiltered, directory, context.signal);
  for (const dataDir of homes)
    print('runtime', `also has pods of the kubeling in ${dataDir}, which are left alone`);
  if (unnamed > 0 && runtime === 'machine')
    print(
      'runtime',
      `also has ${unnamed} pods of other clients, which are left alone, but another kubelet may remove ours`,
    );
}

/** Runs a sandbox, and a container if the runtime has an image for it, to check the runtime. */
export async function checkRuntime(
  directory: DataDirectory,
  cri: CriClient,
  context: CommandContext,
): Promise<void> {
  const print = statusPrinter(context);
  const { image } = await cri.imageStatus({ image: { image: busyboxImageName } }, context.signal);
  const plan = {
    image: image === undefined ? undefined : busyboxImageName,
    logDirectory: directory.selfCheckLogs,
    cgroupParent: dataDirectoryCgroup(directory),
  };
  const report = (step: string, ms: number) => print('self-check', `${step} (${ms.toFixed(0)} ms)`);
  await selfCheck(plan, { ...context, cri, tell: report }, context.signal);
  if (image === undefined)
    print('self-check', `no container was tried, because the runtime has no image ${busyboxImageName}`);
}

async function failureOf(work: () => Promise<void>): Promise<string | undefined> {
  return await work().then(() => undefined, describeError);
}
