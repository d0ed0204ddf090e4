import { hostname } from 'node:os';
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
import type { HostFirewall } from '../../node/index.ts';
import type { PrintStatus } from '../command.ts';
import { type Command, type CommandContext, exitCodes, readFlags, statusPrinter } from '../command.ts';
import { claimDataDirectory } from '../data-directory/content.ts';
import {
  type DataDirectory,
  dataDirFlag,
  defaultDataDirectory,
  openDataDirectory,
  readUpState,
  requireRoot,
  writeUpState,
} from '../data-directory/data-directory.ts';
import { FirewallRuleCleaner, openFirewall } from '../data-directory/firewall.ts';
import { dataDirectoryCgroup, RuntimeWatcher } from '../data-directory/runtime.ts';
import { DelayedSigterm } from '../process-events.ts';
import { ownVersion } from '../version.ts';
import { type ChosenRuntime, checkRuntime, chooseRuntime } from './choose-runtime.ts';
import { defaultApiPort, parseListen } from './listen-address.ts';
import type { UpApi } from './up-api.ts';
import { openUpKubelet, type UpKubelet, type UpKubeletOptions } from './up-kubelet.ts';

const flags = {
  'data-dir': dataDirFlag,
  'runtime-endpoint': {
    kind: stringFlag,
    help: 'The CRI socket to use, or "private" for a private containerd. By default the data directory keeps its runtime; a new one uses an installed runtime that can run pods, else it starts a private containerd.',
  },
  'local-api': {
    kind: boolFlag,
    help: 'Start a Kubernetes API for kubectl. Without it only the pods of the manifest directory run.',
    default: 'true',
  },
  listen: {
    kind: stringFlag,
    help: `Where the Kubernetes API listens: an address, a port, or both. The default is 127.0.0.1 with the last port, at first ${defaultApiPort}, or another one if that is in use.`,
  },
  reset: {
    kind: boolFlag,
    help: 'Start with an empty API: its objects are moved aside, and their pods are stopped.',
  },
  'event-ttl': {
    kind: durationFlag,
    help: 'How long the API stores an event after its last occurrence.',
    default: '1h',
  },
  'shutdown-grace-period': {
    kind: durationFlag,
    help: 'How long pods may take to stop when the machine shuts down, announced by systemd or a SIGTERM to kubeling; pods of low priority stop first. Without it they stop with the machine, and keep running when kubeling exits.',
  },
  'shutdown-grace-period-critical-pods': {
    kind: durationFlag,
    help: 'The part of it that is reserved for critical pods, which stop last.',
  },
  'pod-max-pids': {
    kind: intFlag(1),
    help: 'Maximum number of processes and threads of a pod. The default is 4096, and less on a machine with few process IDs; a tenth of all of them is reserved for the node.',
  },
  grant: {
    kind: listFlag(stringFlag),
    help: 'Grants API access to service accounts: namespace/account=view, edit or admin there, or with @other or @* appended, in other namespaces. By default they have none.',
  },
} satisfies FlagTable;

type UpFlags = FlagValues<typeof flags>;

const usage = `usage: kubeling up [flags]

Runs kubeling on this machine without a cluster: finds the container runtime or starts a private containerd, checks that a
sandbox and a container run, starts a Kubernetes API for kubectl, and runs the pods of that API and of the manifest
directory until Ctrl-C. Containers and the private containerd keep running; "kubeling down" stops and removes them.

${formatFlagHelp(flags).trimEnd()}`;

/**
 * How long to wait for the lock: a process that starts at the same time may hold it briefly before
 * it exits.
 */
const lockWaitMs = 2_000;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  requireRoot('up');
  await checkFlags(values);
  const directory = await openDataDirectory(values['data-dir'] ?? defaultDataDirectory);
  const processes = new ProcessTable();
  const owner = await readLockOwner(directory.lockFile);
  if (owner !== undefined && (await processes.isAlive(owner))) {
    throw new KubelingError(
      'HOME_BUSY',
      `kubeling is up already in ${directory.dataDir}, process ${owner.pid}`,
    );
  }
  const lock = { ...context, processes, waitMs: lockWaitMs };
  await withLockFile(directory.lockFile, lock, () => live(directory, values, context), context.signal);
  return exitCodes.done;
}

/** Checks the flags before any change to the machine. */
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
  const gracePeriodMs = values['shutdown-grace-period'] ?? 0;
  const critical = values['shutdown-grace-period-critical-pods'] ?? 0;
  const isPlain = (ms: number) => ms === 0 || ms >= 1_000;
  if (isPlain(gracePeriodMs) && isPlain(critical) && critical <= gracePeriodMs) return;
  throw new KubelingError(
    'CLI_USAGE',
    `Cannot use these flags: --shutdown-grace-period must be at least 1s, and --shutdown-grace-period-critical-pods not longer: current values are ${formatDurationMs(gracePeriodMs)} and ${formatDurationMs(critical)}`,
  );
}

async function live(directory: DataDirectory, values: UpFlags, context: CommandContext): Promise<void> {
  const print = statusPrinter(context);
  await claimDataDirectory(directory);
  print('kubeling', `${await ownVersion()}, without a cluster, data in ${directory.dataDir}`);
  const metrics = new MetricRegistry({ onError: (error) => print('metrics', describeError(error)) });
  await using log = await openUpLog(directory, context);
  const last = await readUpState(directory);
  // The API is opened concurrently with the runtime, because the API does not need the runtime.
  await using pendingApi = new PendingOpen(
    openApi(directory, values, { logger: log.logger, metrics }, context),
  );
  // The firewall rule must be in place before the self-check runs the first sandbox, because
  // loopback addresses become routable as soon as any pod uses a host port.
  const firewall = await openFirewall(directory, log.logger, context);
  const requestedEndpoint = values['runtime-endpoint'];
  const runtime = await chooseRuntime(
    { directory, requested: requestedEndpoint, last, observer: criMetrics(metrics) },
    context,
  );
  try {
    const { logger, verbosity } = log;
    const given = { directory, runtime, firewall, api: pendingApi.opened, logger, verbosity, metrics };
    await runOnRuntime(given, values, context);
  } finally {
    runtime.unfiltered.close();
  }
  print('ended', 'as asked');
}

interface NodeParts extends Pick<UpKubeletOptions, 'directory' | 'metrics' | 'logger' | 'verbosity'> {
  readonly runtime: ChosenRuntime;
  readonly firewall: HostFirewall;
  /** The embedded API, which may still be opening; undefined if it is disabled. */
  readonly api: Promise<UpApi | undefined>;
}

/** Checks the runtime if necessary, and runs the kubelet on it until aborted. */
async function runOnRuntime(parts: NodeParts, values: UpFlags, context: CommandContext): Promise<void> {
  const { directory, runtime, firewall } = parts;
  const { state, cri, unfiltered } = runtime;
  const options = kubeletOptions(parts, values, runtimeObserverOf(runtime, context));
  // The kubelet is prepared while the runtime is checked, and is started only after the check has
  // succeeded.
  await using pendingKubelet = new PendingOpen(
    parts.api.then((api) => openUpKubelet({ ...options, api }, context)),
  );
  const sweep = await openSweep(runtime, unfiltered, context);
  if (runtime.selfCheck === 'due') await checkRuntime(directory, cri, context);
  const [api, kubelet] = await Promise.all([parts.api, pendingKubelet.opened]);
  await writeUpState(directory, {
    ...state,
    port: kubelet.node.port,
    api: api?.endpoints,
    selfCheck: 'passed',
  });
  using delayed = delayedSigterm(kubelet, context);
  const { signal } = delayed ?? context;
  await Promise.all([
    serve(directory, api, kubelet, { ...context, signal }),
    sweep?.run(signal),
    firewall.run(signal).catch(() => {}),
  ]);
}

function kubeletOptions(
  { directory, metrics, logger, verbosity, runtime }: NodeParts,
  values: UpFlags,
  runtimeObserved: UpKubeletOptions['runtimeObserved'],
): Omit<UpKubeletOptions, 'api'> {
  const { state, cri, name, version, own } = runtime;
  return {
    directory,
    metrics,
    logger,
    verbosity,
    cri,
    endpoint: state.endpoint,
    runtime: { name, version },
    runtimeObserved,
    images: own === undefined ? 'everybodys' : 'ours',
    sandboxesDir: own?.layout.sandboxes,
    cgroupRoot: dataDirectoryCgroup(directory),
    shutdown: {
      totalMs: values['shutdown-grace-period'] ?? 0,
      criticalMs: values['shutdown-grace-period-critical-pods'] ?? 0,
    },
    podMaxPids: values['pod-max-pids'],
  };
}

/**
 * Returns the signal that delays SIGTERM until the pods have stopped; undefined if pods keep
 * running.
 */
function delayedSigterm({ node }: UpKubelet, context: CommandContext): DelayedSigterm | undefined {
  const { shutdown } = node.kubelet.control;
  if (shutdown === undefined) return undefined;
  return new DelayedSigterm(context.signal, async (signal) => {
    statusPrinter(context)('ending', 'stopping the pods first, because of --shutdown-grace-period');
    await shutdown.terminatePods(signal);
  });
}

async function serve(
  directory: DataDirectory,
  api: UpApi | undefined,
  kubelet: UpKubelet,
  context: CommandContext,
): Promise<void> {
  const print = statusPrinter(context);
  const { port } = kubelet.node;
  print(
    'kubelet',
    `answers at 127.0.0.1:${port}, runs the pods of ${directory.manifests}, log in ${directory.log}`,
  );
  const ready = () =>
    print('ready', 'Ctrl-C ends kubeling and leaves containers running; "kubeling down" removes everything');
  if (api === undefined) ready();
  // API and kubelet are useless without each other: if one fails, the other is stopped.
  await allOrAbort(async (signal) => {
    const serving = api === undefined ? undefined : serveApi(api, kubelet, print, ready, signal);
    await Promise.all([serving, kubelet.run(signal)]);
  }, context.signal);
}

/**
 * Opens the cleanup of network rules, only for the private containerd: other runtimes manage their
 * own network.
 */
async function openSweep(
  { own }: ChosenRuntime,
  cri: CriClient,
  context: CommandContext,
): Promise<FirewallRuleCleaner | undefined> {
  if (own === undefined) return undefined;
  const print = statusPrinter(context);
  const { clock, signal } = context;
  const sweep = new FirewallRuleCleaner({ clock, cri, rules: own, print: (text) => print('network', text) });
  await sweep.open(signal);
  return sweep;
}

/** Opens the embedded API; undefined if it is disabled. */
async function openApi(
  directory: DataDirectory,
  { listen, reset, grant = [], 'local-api': mode, 'event-ttl': eventTtlMs }: UpFlags,
  deps: { readonly logger: Logger; readonly metrics: MetricRegistry },
  context: CommandContext,
): Promise<UpApi | undefined> {
  if (mode === false) return undefined;
  const { openUpApi } = await import('./up-api.ts');
  const before = reset === true ? 'set-aside' : 'kept';
  return await openUpApi({ ...deps, directory, listen, before, grants: grant, eventTtlMs }, context);
}

interface UpLog extends AsyncDisposable {
  readonly logger: Logger;
  readonly verbosity: Verbosity;
}

/** Opens the log file to which the components write. */
async function openUpLog(directory: DataDirectory, { clock }: CommandContext): Promise<UpLog> {
  const output = await RotatingLog.open(directory.log, { clock });
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

function runtimeObserverOf({ own }: ChosenRuntime, context: CommandContext): (error: unknown) => void {
  const print = statusPrinter(context);
  const watcher = new RuntimeWatcher({
    print: (text) => print('runtime', text),
    restart: own === undefined ? undefined : () => own.ensureRunning(context.signal),
  });
  return (error) => watcher.observed(error);
}

export const command: Command = {
  name: 'up',
  summary: 'run kubeling on this machine without a cluster',
  usage,
  run,
};

/**
 * A resource that is being opened concurrently. Disposing closes the resource once it has opened,
 * even if the task that waited for it was aborted.
 */
class PendingOpen<T extends AsyncDisposable | undefined> implements AsyncDisposable {
  readonly opened: Promise<T>;

  constructor(here: Promise<T>) {
    this.opened = here;
    here.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await this.opened.catch(() => undefined);
    await opened?.[Symbol.asyncDispose]();
  }
}

/** Prints how to use the API once the node is ready. */
async function serveApi(
  api: UpApi,
  kubelet: UpKubelet,
  print: PrintStatus,
  ready: () => void,
  signal: AbortSignal,
): Promise<void> {
  const running = api.run(signal);
  const { url, kubeconfig } = api.endpoints;
  if (api.movedAside !== undefined)
    print('api', `starts empty; the previous objects are saved in ${api.movedAside}`);
  print('api', `answers at ${url}, its kubeconfig is ${kubeconfig}`);
  const announced = Promise.all([api.nodeReady(signal), kubelet.reachable(signal)]).then(() => {
    print('node', `${hostname().toLowerCase()} is Ready`);
    for (const words of exampleCommands) print('try', `kubectl --kubeconfig ${kubeconfig} ${words}`);
    ready();
  });
  await Promise.all([
    running,
    announced.catch((error) => (signal.aborted ? undefined : Promise.reject(error))),
  ]);
}

const exampleCommands = [
  'get nodes',
  'run hello --image=localhost/kubeling/busybox:1 -- sleep 600',
  'get pods -w',
] as const;
