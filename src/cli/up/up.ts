import { type CriClient, criMetrics } from '../../cri/index.ts';
import {
  allOrAbort,
  boolFlag,
  describeError,
  durationFlag,
  type FlagTable,
  type FlagValues,
  formatDurationMs,
  formatFlagHelp,
  intFlag,
  KubelingError,
  type Logger,
  listFlag,
  MetricRegistry,
  openLog,
  ProcessTable,
  RotatingLog,
  readLockOwner,
  stringFlag,
  Verbosity,
  withLockFile,
} from '../../lib/index.ts';
import { type Command, type CommandContext, exitCodes, readFlags, statusPrinter } from '../command.ts';
import { claimDataDirectory } from '../data-directory/content.ts';
import {
  type DataDirectory,
  dataDirFlag,
  defaultDataDirectory,
  openDataDirectory,
  readUpState,
  refuseWithoutRoot,
  writeUpState,
} from '../data-directory/data-directory.ts';
import { FirewallRuleCleaner, openFirewall } from '../data-directory/firewall.ts';
import { dataDirectoryCgroup, RuntimeWatcher } from '../data-directory/runtime.ts';
import { DelayedSigterm } from '../process-events.ts';
import { ownVersion } from '../version.ts';
import { type ChosenRuntime, checkRuntime, chooseRuntime } from './choose-runtime.ts';
import { defaultApiPort, parseListen } from './listen-address.ts';
import { PendingOpen, serveApi } from './serve-api.ts';
import type { UpApi } from './up-api.ts';
import { openUpKubelet, type UpKubelet } from './up-kubelet.ts';

const flags = {
  'data-dir': dataDirFlag,
  'runtime-endpoint': {
    kind: stringFlag,
    help: 'The CRI socket to use, or "private" for a containerd of our own. Without it the data directory keeps the runtime it has; a new one takes a runtime of the machine that can run pods, else starts a private containerd.',
  },
  'local-api': {
    kind: boolFlag,
    help: 'Bring a Kubernetes API for kubectl along. Without it there are only the pods of the manifest directory.',
    default: 'true',
  },
  listen: {
    kind: stringFlag,
    help: `Where the Kubernetes API answers: an address, a port, or both; unless given 127.0.0.1 with the port of the last time, at first ${defaultApiPort}, or another if that is taken.`,
  },
  reset: {
    kind: boolFlag,
    help: 'Begin with an empty API: the file with its objects is set aside, and their pods are ended.',
  },
  'event-ttl': {
    kind: durationFlag,
    help: 'How long the API keeps an event after it last happened.',
    default: '1h',
  },
  'shutdown-grace-period': {
    kind: durationFlag,
    help: 'How long pods have to end when the machine shuts down, as systemd or a SIGTERM to kubeling tells, those of low priority first. Without it they go down with the machine, and live on when kubeling ends.',
  },
  'shutdown-grace-period-critical-pods': {
    kind: durationFlag,
    help: 'How much of that belongs to critical pods, which end last.',
  },
  'pod-max-pids': {
    kind: intFlag(1),
    help: 'How many processes and threads a pod may have. Unless given 4096, and fewer on a machine with few process IDs; a tenth of all of them always stays with the node.',
  },
  grant: {
    kind: listFlag(stringFlag),
    help: 'Lets service accounts use the API: namespace/account=view, edit or admin there, or with @other, or @* behind it, elsewhere. Without it they may use it for nothing.',
  },
} satisfies FlagTable;

type UpFlags = FlagValues<typeof flags>;

const usage = `usage: kubeling up [flags]

Runs kubeling alone on this machine: finds the container runtime or starts a containerd of its own, checks that a
sandbox and a container run, brings a Kubernetes API for kubectl along, and runs the pods of that API and of the manifest
directory until it is ended with Ctrl-C. Containers and the private containerd live on; "kubeling down" ends and removes
them.

${formatFlagHelp(flags).trimEnd()}`;

/** Somebody who starts at the same moment may hold the lock while it finds out that it was too late. */
const lockWaitMs = 2_000;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  refuseWithoutRoot('up');
  await checkFlags(values);
  const home = await openDataDirectory(values['data-dir'] ?? defaultDataDirectory);
  const processes = new ProcessTable();
  const owner = await readLockOwner(home.lockFile);
  if (owner !== undefined && (await processes.isAlive(owner))) {
    throw new KubelingError('HOME_BUSY', `kubeling is up already in ${home.dataDir}, process ${owner.pid}`);
  }
  const lock = { ...context, processes, waitMs: lockWaitMs };
  await withLockFile(home.lockFile, lock, () => live(home, values, context), context.signal);
  return exitCodes.done;
}

/** Before anything is touched. */
async function checkFlags(values: UpFlags): Promise<void> {
  const { listen, grant = [], 'event-ttl': ttlMs } = values;
  parseListen(listen);
  checkShutdown(values);
  if (grant.length > 0) {
    const { parseGrant } = await import('../../local-api/index.ts');
    for (const each of grant) parseGrant(each);
  }
  if (ttlMs === undefined || ttlMs > 0) return;
  throw new KubelingError(
    'CLI_USAGE',
    `Cannot use these flags: --event-ttl must be longer than 0s: current value is ${formatDurationMs(ttlMs)}`,
  );
}

function checkShutdown(values: UpFlags): void {
  const whole = values['shutdown-grace-period'] ?? 0;
  const critical = values['shutdown-grace-period-critical-pods'] ?? 0;
  const isPlain = (ms: number) => ms === 0 || ms >= 1_000;
  if (isPlain(whole) && isPlain(critical) && critical <= whole) return;
  throw new KubelingError(
    'CLI_USAGE',
    `Cannot use these flags: --shutdown-grace-period must be at least 1s, and --shutdown-grace-period-critical-pods no longer: current values are ${formatDurationMs(whole)} and ${formatDurationMs(critical)}`,
  );
}

async function live(home: DataDirectory, values: UpFlags, context: CommandContext): Promise<void> {
  const say = statusPrinter(context);
  await claimDataDirectory(home);
  say('kubeling', `${await ownVersion()}, alone on this machine, data in ${home.dataDir}`);
  const metrics = new MetricRegistry({ onError: (error) => say('metrics', describeError(error)) });
  await using log = await openUpLog(home, context);
  const last = await readUpState(home);
  // The API needs no runtime: it comes up while that is found and tried.
  await using comingApi = new PendingOpen(openApi(home, values, { logger: log.logger, metrics }, context));
  // The self-check of a runtime that is found runs the first sandbox, and a host port of any pod routes loopback.
  const firewall = await openFirewall(home, log.logger, context);
  const asked = values['runtime-endpoint'];
  const runtime = await chooseRuntime(
    { home, requested: asked, last, observer: criMetrics(metrics) },
    context,
  );
  const { state, cri, whole, name, version } = runtime;
  try {
    const { endpoint } = state;
    const shutdown = {
      wholeMs: values['shutdown-grace-period'] ?? 0,
      criticalMs: values['shutdown-grace-period-critical-pods'] ?? 0,
    };
    const images = runtime.own === undefined ? ('everybodys' as const) : ('ours' as const);
    const about = { runtime: { name, version }, cgroupRoot: dataDirectoryCgroup(home) };
    const given = {
      home,
      endpoint,
      cri,
      metrics,
      ...log,
      ...about,
      shutdown,
      images,
      sandboxesDir: runtime.own?.layout.sandboxes,
      podMaxPids: values['pod-max-pids'],
    };
    const runtimeLooked = looksOf(runtime, context);
    // It is opened while the runtime is tried, and runs when that went well.
    await using coming = new PendingOpen(
      comingApi.opened.then((api) => openUpKubelet({ ...given, api, runtimeLooked }, context)),
    );
    const sweep = await openSweep(runtime, whole, context);
    if (runtime.selfCheck === 'due') await checkRuntime(home, cri, context);
    const [api, kubelet] = await Promise.all([comingApi.opened, coming.opened]);
    await writeUpState(home, {
      ...state,
      port: kubelet.node.port,
      api: api?.endpoints,
      selfCheck: 'passed',
    });
    using delayed = delayedSigterm(kubelet, context);
    const { signal } = delayed ?? context;
    await Promise.all([
      serve(home, api, kubelet, { ...context, signal }),
      sweep?.run(signal),
      firewall.run(signal).catch(() => {}),
    ]);
  } finally {
    whole.close();
  }
  say('ended', 'as asked');
}

/** Undefined where pods live on. */
function delayedSigterm({ node }: UpKubelet, context: CommandContext): DelayedSigterm | undefined {
  const { shutdown } = node.kubelet.control;
  if (shutdown === undefined) return undefined;
  return new DelayedSigterm(context.signal, async (signal) => {
    statusPrinter(context)('ending', 'the pods first, as asked by --shutdown-grace-period');
    await shutdown.terminatePods(signal);
  });
}

async function serve(
  home: DataDirectory,
  api: UpApi | undefined,
  kubelet: UpKubelet,
  context: CommandContext,
): Promise<void> {
  const say = statusPrinter(context);
  const { port } = kubelet.node;
  say('kubelet', `answers at 127.0.0.1:${port}, runs the pods of ${home.manifests}, log in ${home.log}`);
  const ready = () =>
    say('ready', 'Ctrl-C ends kubeling and leaves containers running; "kubeling down" removes everything');
  if (api === undefined) ready();
  // Neither is of use without the other.
  await allOrAbort(async (signal) => {
    const serving = api === undefined ? undefined : serveApi(api, kubelet, say, ready, signal);
    await Promise.all([serving, kubelet.run(signal)]);
  }, context.signal);
}

/** Only our own containerd's network is ours to clean. */
async function openSweep(
  { own }: ChosenRuntime,
  cri: CriClient,
  context: CommandContext,
): Promise<FirewallRuleCleaner | undefined> {
  if (own === undefined) return undefined;
  const say = statusPrinter(context);
  const { clock, signal } = context;
  const sweep = new FirewallRuleCleaner({ clock, cri, rules: own, say: (text) => say('network', text) });
  await sweep.open(signal);
  return sweep;
}

/** Undefined for a kubeling without one. */
async function openApi(
  home: DataDirectory,
  { listen, reset, grant = [], 'local-api': wanted, 'event-ttl': eventTtlMs }: UpFlags,
  deps: { readonly logger: Logger; readonly metrics: MetricRegistry },
  context: CommandContext,
): Promise<UpApi | undefined> {
  if (wanted === false) return undefined;
  const { openUpApi } = await import('./up-api.ts');
  const before = reset === true ? 'set-aside' : 'kept';
  return await openUpApi({ ...deps, home, listen, before, grants: grant, eventTtlMs }, context);
}

interface UpLog extends AsyncDisposable {
  readonly logger: Logger;
  readonly verbosity: Verbosity;
}

/** What the parts of the process say goes to a file. */
async function openUpLog(home: DataDirectory, { clock }: CommandContext): Promise<UpLog> {
  const output = await RotatingLog.open(home.log, { clock });
  const verbosity = new Verbosity(2);
  const { logger, sink } = openLog({ clock, format: 'text', output, verbosity });
  return {
    logger,
    verbosity,
    async [Symbol.asyncDispose]() {
      sink.flushSync();
      await output[Symbol.asyncDispose]();
    },
  };
}

function looksOf({ own }: ChosenRuntime, context: CommandContext): (error: unknown) => void {
  const say = statusPrinter(context);
  const watcher = new RuntimeWatcher({
    say: (text) => say('runtime', text),
    restart: own === undefined ? undefined : () => own.ensureRunning(context.signal),
  });
  return (error) => watcher.observed(error);
}

export const command: Command = {
  name: 'up',
  summary: 'run alone on this machine, without a cluster',
  usage,
  run,
};
