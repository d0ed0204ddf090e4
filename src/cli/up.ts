import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hostFiles, loadConfig } from '../config/index.ts';
import { busyboxImageName, findRuntimeSocket, type PrivateContainerd } from '../containerd/index.ts';
import { type CriClient, criMetrics } from '../cri/index.ts';
import { selfCheck } from '../kubelet/index.ts';
import {
  describeError,
  type FlagTable,
  formatFlagHelp,
  KubelingError,
  MetricRegistry,
  openLog,
  ProcessTable,
  RotatingLog,
  readLockOwner,
  stringFlag,
  Verbosity,
  withLockFile,
} from '../lib/index.ts';
import { type Command, type CommandContext, exitCodes } from './command.ts';
import { readFlags } from './command-flags.ts';
import {
  dataDirFlag,
  defaultDataDirectory,
  type Home,
  openHome,
  refuseWithoutRoot,
  writeUpState,
} from './home.ts';
import { kubeletSettings, settleWithRuntime } from './kubelet-settings.ts';
import { type NodeOptions, openNode } from './node-process.ts';
import { connectRuntime, privateContainerd } from './private-runtime.ts';
import { RuleSweep } from './rule-sweep.ts';
import { RuntimeWatcher } from './runtime-watcher.ts';
import { ownVersion } from './version.ts';

const flags = {
  'data-dir': dataDirFlag,
  'runtime-endpoint': {
    kind: stringFlag,
    help: 'The CRI socket to use, or "private" for a containerd of our own; without it one that runs already is used, else a private one is started.',
  },
} satisfies FlagTable;

const usage = `usage: kubeling up [flags]

Runs kubeling alone on this machine: finds the container runtime or starts a containerd of its own, checks that a
sandbox and a container run, and watches over it until it is ended with Ctrl-C. Containers and the private containerd
live on; "kubeling down" ends and removes them.

${formatFlagHelp(flags).trimEnd()}`;

/** A static busybox, as Debian's busybox-static installs it. */
const busyboxProgram = '/bin/busybox';

/** Somebody who starts at the same moment may hold the lock while it finds out that it was too late. */
const lockWaitMs = 2_000;

interface Runtime {
  readonly endpoint: string;
  readonly told: string;
  /** Ours to start, restart and stop; undefined for the machine's own. */
  readonly own: PrivateContainerd | undefined;
}

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  refuseWithoutRoot('up');
  const home = await openHome(values['data-dir'] ?? defaultDataDirectory);
  const processes = new ProcessTable();
  const owner = await readLockOwner(home.lockFile);
  if (owner !== undefined && (await processes.isAlive(owner))) {
    throw new KubelingError('HOME_BUSY', `kubeling is up already in ${home.dataDir}, process ${owner.pid}`);
  }
  const lock = { ...context, processes, waitMs: lockWaitMs };
  await withLockFile(
    home.lockFile,
    lock,
    () => live(home, values['runtime-endpoint'], context),
    context.signal,
  );
  return exitCodes.done;
}

async function live(home: Home, asked: string | undefined, context: CommandContext): Promise<void> {
  const say = sayTo(context);
  say('kubeling', `${await ownVersion()}, alone on this machine, data in ${home.dataDir}`);
  const runtime = await findRuntime(home, asked, context);
  const state = {
    runtime: runtime.own === undefined ? 'machine' : 'private',
    endpoint: runtime.endpoint,
  } as const;
  await writeUpState(home, state);
  const metrics = new MetricRegistry({ onError: (error) => say('metrics', describeError(error)) });
  const cri = connectRuntime(runtime.endpoint, context, criMetrics(metrics));
  try {
    const version = await cri.checkVersion(context.signal);
    say('runtime', `${version.runtimeName} ${version.runtimeVersion}, ${runtime.told}`);
    const sweep = await openSweep(runtime, cri, context);
    await check(home, runtime, cri, context);
    const given = { cri, metrics, runtimeName: version.runtimeName };
    const { node, close } = await openKubelet(home, runtime, given, context);
    await writeUpState(home, { ...state, port: node.port });
    say(
      'kubelet',
      `answers at 127.0.0.1:${node.port}, runs the pods of ${home.manifests}, log in ${home.log}`,
    );
    say('ready', 'Ctrl-C ends kubeling and leaves containers running; "kubeling down" removes everything');
    await Promise.all([node.run(context.signal), sweep?.run(context.signal)]);
    await close();
  } finally {
    cri.close();
  }
  say('ended', 'as asked');
}

async function findRuntime(home: Home, asked: string | undefined, context: CommandContext): Promise<Runtime> {
  if (asked !== undefined && asked !== 'private')
    return { endpoint: asked, told: `asked for at ${asked}`, own: undefined };
  const { usable } =
    asked === 'private' ? { usable: undefined } : await findRuntimeSocket(context, context.signal);
  if (usable !== undefined)
    return { endpoint: `unix://${usable}`, told: `found at ${usable}`, own: undefined };
  const own = await privateContainerd(home, context);
  const running = await own.ensureRunning(context.signal);
  const images = await own.images();
  if (!(await images.has(busyboxImageName, context.signal)))
    await images.importBusybox(busyboxProgram, context.signal);
  const told = `our own, ${running.origin}, process ${running.pid}, pods in ${running.subnet} on ${running.network}`;
  return { endpoint: `unix://${running.socket}`, told, own };
}

async function check(home: Home, runtime: Runtime, cri: CriClient, context: CommandContext): Promise<void> {
  const say = sayTo(context);
  const { image } = await cri.imageStatus({ image: { image: busyboxImageName } }, context.signal);
  const plan = {
    image: image === undefined ? undefined : busyboxImageName,
    logDirectory: home.selfCheckLogs,
    cgroupParent: cgroupOf(runtime),
  };
  const tell = (step: string, ms: number) => say('self-check', `${step} (${ms.toFixed(0)} ms)`);
  await selfCheck(plan, { ...context, cri, tell }, context.signal);
  if (image === undefined)
    say('self-check', `no container was tried, as the runtime has no image ${busyboxImageName}`);
}

/** Only our own containerd's network is ours to clean. */
async function openSweep(
  { own }: Runtime,
  cri: CriClient,
  context: CommandContext,
): Promise<RuleSweep | undefined> {
  if (own === undefined) return undefined;
  const say = sayTo(context);
  const { clock, signal } = context;
  const sweep = new RuleSweep({ clock, cri, rules: own, say: (text) => say('network', text) });
  await sweep.open(signal);
  return sweep;
}

/** The kubelet of this home: pods come from its manifest directory; its log goes to a file. */
async function openKubelet(
  home: Home,
  runtime: Runtime,
  given: Pick<NodeOptions, 'cri' | 'metrics' | 'runtimeName'>,
  context: CommandContext,
) {
  const { clock, random, signal } = context;
  await mkdir(home.manifests, { recursive: true, mode: 0o750 });
  const argv = [
    `--root-dir=${home.rootDir}`,
    `--pod-manifest-path=${home.manifests}`,
    `--cgroup-root=${cgroupOf(runtime)}`,
    // Whoever tries kubeling on a laptop has swap; pods get none of it.
    '--fail-swap-on=false',
  ];
  const loaded = await loadConfig(argv, { files: hostFiles(), cwd: home.dataDir }, signal);
  const output = await RotatingLog.open(home.log, { clock });
  const { logger, sink } = openLog({
    clock,
    format: 'text',
    output,
    verbosity: new Verbosity(2),
  });
  const settings = {
    ...(await settleWithRuntime(await kubeletSettings(loaded), loaded, { clock, logger, ...given }, signal)),
    podLogsDir: home.podLogs,
    logLinksDir: join(home.podLogs, 'containers'),
    clusterDns: 'no-cluster',
  } as const;
  const watcher = watcherOf(runtime, context);
  const node = await openNode({
    clock,
    random,
    logger,
    ...given,
    settings,
    runtimeLooked: (error) => watcher.looked(error),
    port: loaded.config.port,
    healthzPort: loaded.config.healthzPort,
    portTaken: 'take-another',
    streamingIdleMs: loaded.config.streamingConnectionIdleTimeoutMs,
  });
  const close = async () => {
    sink.flushSync();
    await output[Symbol.asyncDispose]();
  };
  return { node, close };
}

function cgroupOf({ own }: Runtime): string {
  return own?.layout.cgroup ?? '/kubeling';
}

function watcherOf({ own }: Runtime, context: CommandContext): RuntimeWatcher {
  const say = sayTo(context);
  return new RuntimeWatcher({
    say: (text) => say('runtime', text),
    restart: own === undefined ? undefined : () => own.ensureRunning(context.signal),
  });
}

type Say = (about: string, text: string) => void;

function sayTo({ stdout }: CommandContext): Say {
  return (about, text) => stdout.write(`${about.padEnd(10)}  ${text}\n`);
}

export const command: Command = {
  name: 'up',
  summary: 'run alone on this machine, without a cluster',
  usage,
  run,
};
