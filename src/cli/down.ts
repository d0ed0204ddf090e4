import { rm } from 'node:fs/promises';
import { type TeardownReport, unmountBelow } from '../containerd/index.ts';
import { removeSandbox, selfCheckLabel } from '../kubelet/index.ts';
import {
  boolFlag,
  describeError,
  type FlagTable,
  formatFlagHelp,
  KubelingError,
  ProcessTable,
  readLockOwner,
  runChecked,
  withDeadline,
} from '../lib/index.ts';
import { type Command, type CommandContext, exitCodes } from './command.ts';
import { readFlags } from './command-flags.ts';
import {
  dataDirFlag,
  defaultDataDirectory,
  findHome,
  type Home,
  readUpState,
  refuseWithoutRoot,
} from './home.ts';
import { connectRuntime, privateContainerd } from './private-runtime.ts';

const flags = {
  'data-dir': dataDirFlag,
  all: { kind: boolFlag, help: 'Remove images and the data directory too.' },
} satisfies FlagTable;

const usage = `usage: kubeling down [flags]

Ends a kubeling that is up, its pods, and the containerd it started, and removes what they left on the machine:
processes, mounts, network, cgroups. A container runtime that was there before is left running.

${formatFlagHelp(flags).trimEnd()}`;

const upEndsWithinMs = 20_000;
const removeWithinMs = 120_000;
const unmountWithinMs = 30_000;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  refuseWithoutRoot('down');
  const home = await findHome(values['data-dir'] ?? defaultDataDirectory);
  if (home === undefined) {
    context.stdout.write('Nothing was up here.\n');
    return exitCodes.done;
  }
  await endUp(home, context);
  const left = await removeRuntime(home, values.all === true ? 'remove' : 'keep', context);
  const problems = [...left, ...(await unmountPods(home, context))];
  await rm(home.stateFile, { force: true });
  if (values.all === true && problems.length === 0) await rm(home.dataDir, { recursive: true, force: true });
  for (const problem of problems) context.stderr.write(`${problem}\n`);
  return problems.length === 0 ? exitCodes.done : exitCodes.failed;
}

/** Ends the process that is up, so that nobody starts again what we are about to remove. */
async function endUp(home: Home, { clock, signal, stdout }: CommandContext): Promise<void> {
  const processes = new ProcessTable();
  const owner = await readLockOwner(home.lockFile);
  if (owner === undefined || !(await processes.isAlive(owner))) return;
  await processes.signal(owner, 'SIGTERM');
  const left = await processes.waitGone([owner], { clock, ms: upEndsWithinMs }, signal);
  if (left.length > 0) await processes.signal(owner, 'SIGKILL');
  if ((await processes.waitGone([owner], { clock, ms: upEndsWithinMs }, signal)).length > 0) {
    throw new KubelingError('HOME_BUSY', `Cannot end kubeling: process ${owner.pid} does not go away`);
  }
  stdout.write(`kubeling   process ${owner.pid} ended\n`);
}

/** Answers what could not be removed. */
async function removeRuntime(
  home: Home,
  images: 'keep' | 'remove',
  context: CommandContext,
): Promise<readonly string[]> {
  const state = await readUpState(home);
  if (state?.runtime === 'machine') return await removeFromMachine(state.endpoint, context);
  const containerd = await privateContainerd(home, context);
  const health = await containerd.health(context.signal);
  const problems =
    health.state === 'serving'
      ? await removeSandboxes(`unix://${containerd.layout.socket}`, {}, context)
      : [];
  const report = await containerd.teardown({ images }, context.signal);
  tellReport(report, context);
  // What could not be removed in order was then removed by force, so only what is left now counts.
  return report.problems.length === 0 ? [] : [...problems, ...report.problems];
}

/** Parts of volumes that containers were given; whoever removes directories must not come upon volumes of users there. */
async function unmountPods(
  home: Home,
  { clock, signal, stdout }: CommandContext,
): Promise<readonly string[]> {
  const run = (file: string, args: readonly string[], inner: AbortSignal) =>
    runChecked({ file, args, clock, deadlineMs: unmountWithinMs }, inner);
  const { removed, problems } = await unmountBelow(home.rootDir, { run, procDir: '/proc' }, signal);
  if (removed.length > 0) stdout.write(`removed    ${removed.length} parts of volumes\n`);
  return problems;
}

async function removeFromMachine(endpoint: string, context: CommandContext): Promise<readonly string[]> {
  return await removeSandboxes(endpoint, { [selfCheckLabel]: 'true' }, context);
}

async function removeSandboxes(
  endpoint: string,
  labelSelector: Readonly<Record<string, string>>,
  context: CommandContext,
): Promise<readonly string[]> {
  const { clock, signal, stdout } = context;
  const cri = connectRuntime(endpoint, context);
  try {
    return await withDeadline(
      { clock, ms: removeWithinMs, what: 'remove the pods' },
      async (inner) => {
        const { items } = await cri.listPodSandbox({ filter: { labelSelector } }, inner);
        const results = await Promise.allSettled(items.map(({ id }) => removeSandbox(cri, id, inner)));
        if (items.length > 0) stdout.write(`pods       ${items.length} removed\n`);
        return results
          .filter((result) => result.status === 'rejected')
          .map((result) => describeError(result.reason));
      },
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    return [describeError(error)];
  } finally {
    cri.close();
  }
}

function tellReport(report: TeardownReport, { stdout }: CommandContext): void {
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
