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
  type ProcessIdentity,
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
  requireRoot,
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
    help: 'Maximum grace period of containers; a pod with a shorter grace period keeps it.',
    default: '30s',
  },
  all: {
    kind: boolFlag,
    help: 'Also remove images and the data directory, except for what existed there before the first "up".',
  },
} satisfies FlagTable;

const usage = `usage: kubeling down [flags]

Stops a running kubeling, its pods, and the private containerd, and removes what they left on the machine: processes,
mounts, network, cgroups. Any other container runtime keeps running, with all pods that do not belong to this data
directory. The objects of the API and the manifest directory stay for the next "up".

${formatFlagHelp(flags).trimEnd()}`;

const upExitTimeoutMs = 20_000;
/** The time to stop and remove pods, in addition to their grace period. */
const removeWithinMs = 120_000;
const defaultGraceMs = 30_000;
const unmountWithinMs = 30_000;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  requireRoot('down');
  const directory = await findDataDirectory(values['data-dir'] ?? defaultDataDirectory);
  if (directory === undefined || !(await isDataDirectory(directory))) {
    const left = directory === undefined ? '.' : `: ${directory.dataDir} is not changed.`;
    context.stdout.write(`Nothing is up here${left}\n`);
    return exitCodes.done;
  }
  await stopUp(directory, context);
  const options: DownOptions = {
    graceMs: Math.max(0, values.grace ?? defaultGraceMs),
    images: values.all === true ? 'remove' : 'keep',
  };
  const left = await removePods(directory, options, context);
  // The firewall rules stay while pods that could not be stopped may still use host ports.
  const rules = left.length === 0 ? await removeFirewall(directory, context) : [];
  const problems = [...left, ...rules, ...(await unmountPods(directory, context))];
  // The state file stays while something could not be removed, because a later call needs it.
  if (problems.length === 0) await rm(directory.stateFile, { force: true });
  if (values.all === true && problems.length === 0) problems.push(...(await removeData(directory, context)));
  for (const problem of problems) context.stderr.write(`${problem}\n`);
  return problems.length === 0 ? exitCodes.done : exitCodes.failed;
}

/**
 * Removes the data directory. Returns what could not be removed, so that the user can run "down
 * --all" again.
 */
async function removeData(directory: DataDirectory, { stdout }: CommandContext): Promise<readonly string[]> {
  const { retained, problems } = await removeDataDirectory(directory);
  if (retained.length > 0)
    stdout.write(`kept       previous content of ${directory.dataDir}: ${retained.join(', ')}\n`);
  return problems;
}

interface DownOptions {
  readonly graceMs: number;
  readonly images: 'keep' | 'remove';
}

/** Stops the running "kubeling up" first, so that it does not recreate what is removed. */
async function stopUp(directory: DataDirectory, { clock, signal, stdout }: CommandContext): Promise<void> {
  const processes = new ProcessTable();
  const owner = await readLockOwner(directory.lockFile);
  if (owner === undefined || !(await processes.isAlive(owner))) return;
  if (!(await isKubelingUp(owner, processes))) {
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot stop kubeling: ${directory.lockFile} names the process ${owner.pid}, which is not a "kubeling up" of root. Remove the file if no kubeling is up`,
    );
  }
  await processes.signal(owner, 'SIGTERM');
  const left = await processes.waitForExit([owner], { clock, ms: upExitTimeoutMs }, signal);
  if (left.length > 0) await processes.signal(owner, 'SIGKILL');
  if ((await processes.waitForExit([owner], { clock, ms: upExitTimeoutMs }, signal)).length > 0) {
    throw new KubelingError(
      'HOME_BUSY',
      `Cannot stop kubeling: process ${owner.pid} does not exit. Kill it and run "kubeling down" again`,
    );
  }
  stdout.write(`kubeling   stopped process ${owner.pid}\n`);
}

/**
 * Whether the process is a "kubeling up" of root. Checked before the process gets a signal, because
 * the lock file may be damaged or forged.
 */
export async function isKubelingUp(owner: ProcessIdentity, processes: ProcessTable): Promise<boolean> {
  const argv = (await processes.find(owner.pid))?.argv ?? [];
  const program = argv.findIndex((argument) => /(?:^|\/)src\/main\.ts$/.test(argument));
  return program > 0 && argv[program + 1] === 'up' && (await processes.isHostRoot(owner, ['user']));
}

/**
 * Removes the pods of this data directory from every runtime it has used. Returns what could not be
 * removed.
 */
async function removePods(
  directory: DataDirectory,
  options: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const state = await readUpState(directory);
  const problems: string[] = [];
  const shared = [...(state?.earlier ?? []), ...(state?.runtime === 'machine' ? [state.endpoint] : [])];
  for (const endpoint of shared)
    problems.push(...(await removeFromMachine(endpoint, directory, options, context)));
  if (state?.runtime !== 'machine' || (await hasContainerd(directory)))
    problems.push(...(await removePrivate(directory, options, context)));
  // The parent cgroup is removed last, and only if all pods were removed: the pods of all runtimes
  // are in it.
  if (shared.length > 0 && problems.length === 0)
    problems.push(...(await removeDirectoryCgroup(directory, context)));
  return problems;
}

async function hasContainerd({ dataDir }: DataDirectory): Promise<boolean> {
  return await stat(containerdLayout(dataDir).dir).then(
    () => true,
    () => false,
  );
}

async function removePrivate(
  directory: DataDirectory,
  options: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const containerd = await privateContainerd(directory, context);
  const health = await containerd.health(context.signal);
  const endpoint = `unix://${containerd.layout.socket}`;
  const problems =
    health.state === 'serving'
      ? await removeSandboxes(endpoint, { directory, unnamed: 'ours' }, options, context)
      : [];
  const report = await containerd.teardown(options, context.signal);
  printReport(report, context);
  // Pods whose orderly removal failed were then removed by force. So if the teardown reports no
  // problem, the earlier problems do not count.
  return report.problems.length === 0 ? [] : [...problems, ...report.problems];
}

/**
 * Unmounts the subpaths of volumes that containers used, so that removing directories cannot delete
 * the content of volumes.
 */
async function unmountPods(
  directory: DataDirectory,
  { clock, signal, stdout }: CommandContext,
): Promise<readonly string[]> {
  const run = (file: string, args: readonly string[], inner: AbortSignal) =>
    runChecked({ file, args, clock, deadlineMs: unmountWithinMs }, inner);
  const { removed, problems } = await unmountBelow(
    directory.rootDir,
    { run, procDir: '/proc', sysDir: '/sys' },
    signal,
  );
  if (removed.length > 0) stdout.write(`removed    ${removed.length} volume mounts of containers\n`);
  if (problems.length > 0) return problems;
  return await unshareRoot(directory.rootDir, clock, signal).then(
    () => [],
    (error: unknown) => [describeError(error)],
  );
}

/** Removes only the pods of this data directory, because other clients use the runtime too. */
async function removeFromMachine(
  endpoint: string,
  directory: DataDirectory,
  options: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const problems = await removeSandboxes(endpoint, { directory, unnamed: 'of-others' }, options, context);
  return problems.map((problem) => `Cannot remove all pods from the runtime at ${endpoint}: ${problem}`);
}

async function removeDirectoryCgroup(
  directory: DataDirectory,
  { clock, signal, stdout }: CommandContext,
): Promise<readonly string[]> {
  const { removed, problems } = await removeTopCgroup(
    dataDirectoryCgroup(directory),
    { clock, procDir: '/proc' },
    signal,
  );
  if (removed.length > 0) stdout.write(`removed    ${removed.length} cgroups\n`);
  return problems;
}

async function removeSandboxes(
  endpoint: string,
  ownPods: OwnPodsOptions,
  { graceMs }: DownOptions,
  context: CommandContext,
): Promise<readonly string[]> {
  const { clock, signal, stdout } = context;
  const unfiltered = connectRuntime(endpoint, context);
  try {
    const { found, problems } = await withDeadline(
      { clock, ms: removeWithinMs + graceMs, what: 'remove the pods' },
      (inner) => stopPods(onlyOwnPods(unfiltered, ownPods), graceMs, inner),
      signal,
    );
    const removed = found - problems.length;
    if (removed > 0) stdout.write(`pods       stopped and removed ${removed}\n`);
    return problems;
  } catch (error) {
    signal.throwIfAborted();
    return [describeError(error)];
  } finally {
    unfiltered.close();
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
  summary: 'stop what "up" started and clean up after it',
  usage,
  run,
};

export interface StoppedPods {
  /** The number of pods found in the runtime. */
  readonly found: number;
  readonly problems: readonly string[];
}

/** The grace period of a pod that does not specify one. */
const defaultGraceSeconds = 30;

/**
 * Stops and removes all listed pods concurrently. Containers get the grace period of their pod,
 * limited by the given one. PreStop hooks are not run, because only the kubelet can run them and it
 * has stopped.
 */
async function stopPods(cri: CriClient, mostGraceMs: number, signal: AbortSignal): Promise<StoppedPods> {
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
  const failed = ends.filter((result) => result.status === 'rejected');
  return { found: items.length, problems: failed.map(({ reason }) => describeError(reason)) };
}

function graceSeconds(annotations: Readonly<Record<string, string>>, mostMs: number): number {
  const { deletionGraceSeconds, terminationGraceSeconds } = readContainerAnnotations(annotations);
  const own = deletionGraceSeconds ?? terminationGraceSeconds ?? defaultGraceSeconds;
  return Math.min(own, Math.ceil(mostMs / 1_000));
}

/** A failure is ignored, because stopping the sandbox also stops its containers. */
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
