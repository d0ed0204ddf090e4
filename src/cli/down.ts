import { rm, stat } from 'node:fs/promises';
import { containerdLayout, removeTopCgroup, type TeardownReport, unmountBelow } from '../containerd/index.ts';
import type { CriClient } from '../cri/index.ts';

import {
  boolFlag,
  describeError,
  durationFlag,
  type FlagTable,
  formatFlagHelp,
  isKind,
  KubelingError,
  ProcessTable,
  readLockOwner,
  runChecked,
  withDeadline,
} from '../lib/index.ts';
import { readContainerAnnotations, removeSandbox } from '../runtime/index.ts';
import { type Command, type CommandContext, exitCodes, readFlags } from './command.ts';
import { isDataDirectory, removeDataDirectory } from './data-directory/content.ts';
import {
  type DataDirectory,
  dataDirFlag,
  defaultDataDirectory,
  findDataDirectory,
  readUpState,
  refuseWithoutRoot,
} from './data-directory/data-directory.ts';
import { removeFirewall } from './data-directory/firewall.ts';
import {
  connectRuntime,
  dataDirectoryCgroup,
  type OwnPodsOptions,
  onlyOwnPods,
  privateContainerd,
} from './data-directory/runtime.ts';
import { unshareRoot } from './run/kubelet-directories.ts';

const flags = {
  'data-dir': dataDirFlag,
  grace: {
    kind: durationFlag,
    help: 'How long containers get at most to end by themselves; a pod that asks for less gets less.',
    default: '30s',
  },
  all: {
    kind: boolFlag,
    help: 'Remove images and the data directory too, but not what was in it before the first "up".',
  },
} satisfies FlagTable;

const usage = `usage: kubeling down [flags]

Ends a kubeling that is up, its pods, and the containerd it started, and removes what they left on the machine:
processes, mounts, network, cgroups. A container runtime that was there before is left running, with all pods in it that
are not of this data directory. What was in the API and in the manifest directory is there again with the next "up".

${formatFlagHelp(flags).trimEnd()}`;

const upExitTimeoutMs = 20_000;
/** Besides the grace they get. */
const removeWithinMs = 120_000;
const defaultGraceMs = 30_000;
const unmountWithinMs = 30_000;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  refuseWithoutRoot('down');
  const home = await findDataDirectory(values['data-dir'] ?? defaultDataDirectory);
  if (home === undefined || !(await isDataDirectory(home))) {
    const left = home === undefined ? '.' : `: ${home.dataDir} is left as it is.`;
    context.stdout.write(`Nothing was up here${left}\n`);
    return exitCodes.done;
  }
  await stopUp(home, context);
  const wish: DownOptions = {
    graceMs: Math.max(0, values.grace ?? defaultGraceMs),
    images: values.all === true ? 'remove' : 'keep',
  };
  const left = await removePods(home, wish, context);
  // Pods that could not be ended may still have host ports.
  const rules = left.length === 0 ? await removeFirewall(home, context) : [];
  const problems = [...left, ...rules, ...(await unmountPods(home, context))];
  // Whoever comes again to remove the rest has to know where it is.
  if (problems.length === 0) await rm(home.stateFile, { force: true });
  if (values.all === true && problems.length === 0) await removeData(home, context);
  for (const problem of problems) context.stderr.write(`${problem}\n`);
  return problems.length === 0 ? exitCodes.done : exitCodes.failed;
}

async function removeData(home: DataDirectory, { stdout }: CommandContext): Promise<void> {
  const kept = await removeDataDirectory(home);
  if (kept.length > 0) stdout.write(`kept       what was in ${home.dataDir} before: ${kept.join(', ')}\n`);
}

interface DownOptions {
  readonly graceMs: number;
  readonly images: 'keep' | 'remove';
}

/** Ends the process that is up, so that nobody starts again what we are about to remove. */
async function stopUp(home: DataDirectory, { clock, signal, stdout }: CommandContext): Promise<void> {
  const processes = new ProcessTable();
  const owner = await readLockOwner(home.lockFile);
  if (owner === undefined || !(await processes.isAlive(owner))) return;
  await processes.signal(owner, 'SIGTERM');
  const left = await processes.waitForExit([owner], { clock, ms: upExitTimeoutMs }, signal);
  if (left.length > 0) await processes.signal(owner, 'SIGKILL');
  if ((await processes.waitForExit([owner], { clock, ms: upExitTimeoutMs }, signal)).length > 0) {
    throw new KubelingError('HOME_BUSY', `Cannot end kubeling: process ${owner.pid} does not go away`);
  }
  stdout.write(`kubeling   process ${owner.pid} ended\n`);
}

/** From every runtime this home has used. Answers what could not be removed. */
async function removePods(
  home: DataDirectory,
  wish: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const state = await readUpState(home);
  const problems: string[] = [];
  const shared = [...(state?.earlier ?? []), ...(state?.runtime === 'machine' ? [state.endpoint] : [])];
  for (const endpoint of shared) problems.push(...(await removeFromMachine(endpoint, home, wish, context)));
  if (state?.runtime !== 'machine' || (await hasContainerd(home)))
    problems.push(...(await removePrivate(home, wish, context)));
  // Last, as it is one for all of them; and whose pods could not be ended still needs it.
  if (shared.length > 0 && problems.length === 0) problems.push(...(await removeHomeCgroup(home, context)));
  return problems;
}

async function hasContainerd({ dataDir }: DataDirectory): Promise<boolean> {
  return await stat(containerdLayout(dataDir).dir).then(
    () => true,
    () => false,
  );
}

async function removePrivate(
  home: DataDirectory,
  wish: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const containerd = await privateContainerd(home, context);
  const health = await containerd.health(context.signal);
  const endpoint = `unix://${containerd.layout.socket}`;
  const problems =
    health.state === 'serving'
      ? await removeSandboxes(endpoint, { home, unnamed: 'ours' }, wish, context)
      : [];
  const report = await containerd.teardown(wish, context.signal);
  printReport(report, context);
  // What could not be removed in order was then removed by force, so only what is left now counts.
  return report.problems.length === 0 ? [] : [...problems, ...report.problems];
}

/** Parts of volumes that containers were given; whoever removes directories must not come upon volumes of users there. */
async function unmountPods(
  home: DataDirectory,
  { clock, signal, stdout }: CommandContext,
): Promise<readonly string[]> {
  const run = (file: string, args: readonly string[], inner: AbortSignal) =>
    runChecked({ file, args, clock, deadlineMs: unmountWithinMs }, inner);
  const { removed, problems } = await unmountBelow(
    home.rootDir,
    { run, procDir: '/proc', sysDir: '/sys' },
    signal,
  );
  if (removed.length > 0) stdout.write(`removed    ${removed.length} parts of volumes\n`);
  if (problems.length > 0) return problems;
  return await unshareRoot(home.rootDir, clock, signal).then(
    () => [],
    (error: unknown) => [describeError(error)],
  );
}

/** Only what is ours: the runtime belongs to others too. */
async function removeFromMachine(
  endpoint: string,
  home: DataDirectory,
  wish: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const problems = await removeSandboxes(endpoint, { home, unnamed: 'of-others' }, wish, context);
  return problems.map((problem) => `Cannot remove all pods from the runtime at ${endpoint}: ${problem}`);
}

async function removeHomeCgroup(
  home: DataDirectory,
  { clock, signal, stdout }: CommandContext,
): Promise<readonly string[]> {
  const { removed, problems } = await removeTopCgroup(
    dataDirectoryCgroup(home),
    { clock, procDir: '/proc' },
    signal,
  );
  if (removed.length > 0) stdout.write(`removed    ${removed.length} cgroups\n`);
  return problems;
}

async function removeSandboxes(
  endpoint: string,
  seenBy: OwnPodsOptions,
  { graceMs }: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const { clock, signal, stdout } = context;
  const whole = connectRuntime(endpoint, context);
  try {
    const { found, problems } = await withDeadline(
      { clock, ms: removeWithinMs + graceMs, what: 'remove the pods' },
      (inner) => stopPods(onlyOwnPods(whole, seenBy), graceMs, inner),
      signal,
    );
    const gone = found - problems.length;
    if (gone > 0) stdout.write(`pods       ${gone} ended and removed\n`);
    return problems;
  } catch (error) {
    signal.throwIfAborted();
    return [describeError(error)];
  } finally {
    whole.close();
  }
}

function printReport(report: TeardownReport, { stdout }: CommandContext): void {
  stdout.write(`containerd ${report.containerd === 'stopped' ? 'stopped' : 'was not running'}\n`);
  const removed = Object.entries(report).filter(
    (entry): entry is [string, readonly unknown[]] => Array.isArray(entry[1]) && entry[0] !== 'problems',
  );
  for (const [what, items] of removed)
    if (items.length > 0) stdout.write(`removed    ${items.length} ${what}\n`);
}

export const command: Command = {
  name: 'down',
  summary: 'end what "up" left running and clean up after it',
  usage,
  run,
};

export interface StoppedPods {
  /** How many there were. */
  readonly found: number;
  readonly problems: readonly string[];
}

/** What a pod gets that does not say. */
const defaultGraceSeconds = 30;

/**
 * Ends and removes all pods the runtime shows, all at once: containers are asked to end, and get the time their pod
 * grants them but no more than given here. Hooks are for the kubelet to run, and none runs by now.
 */
export async function stopPods(
  cri: CriClient,
  mostGraceMs: number,
  signal: AbortSignal,
): Promise<StoppedPods> {
  const [{ items }, { containers }] = await Promise.all([
    cri.listPodSandbox({}, signal),
    cri.listContainers({ filter: { state: { state: 'CONTAINER_RUNNING' } } }, signal),
  ]);
  const running = Map.groupBy(containers, ({ podSandboxId }) => podSandboxId);
  const end = async (podSandboxId: string) => {
    const stops = (running.get(podSandboxId) ?? []).map(({ id: containerId, annotations }) =>
      stopContainer(cri, containerId, graceSeconds(annotations, mostGraceMs), signal),
    );
    await Promise.all(stops);
    await removeSandbox(cri, podSandboxId, signal);
  };
  const ends = await Promise.allSettled(items.map(({ id }) => end(id)));
  const failed = ends.filter((one) => one.status === 'rejected');
  return { found: items.length, problems: failed.map(({ reason }) => describeError(reason)) };
}

function graceSeconds(annotations: Readonly<Record<string, string>>, mostMs: number): number {
  const { deletionGraceSeconds, terminationGraceSeconds } = readContainerAnnotations(annotations);
  const own = deletionGraceSeconds ?? terminationGraceSeconds ?? defaultGraceSeconds;
  return Math.min(own, Math.ceil(mostMs / 1_000));
}

/** Whatever goes wrong here, the end of its sandbox ends it too. */
async function stopContainer(
  cri: CriClient,
  containerId: string,
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  await cri.stopContainer({ containerId, timeout: BigInt(seconds) }, signal).catch((error) => {
    if (!isKind(error, 'NotFound')) signal.throwIfAborted();
  });
}
