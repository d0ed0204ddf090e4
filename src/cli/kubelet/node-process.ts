import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { CriClient } from '../../cri/index.ts';
import type { ClusterNode } from '../../kubelet/cluster/index.ts';
import { Kubelet, type KubeletSettings } from '../../kubelet/index.ts';
import {
  type Clock,
  isKind,
  KubelingError,
  LinkedController,
  type Logger,
  type MetricRegistry,
  onAbort,
  type Random,
  readFileIfExists,
  type Timer,
  writeFileAtomic,
} from '../../lib/index.ts';
import { ListeningPorts } from '../../node/index.ts';
import {
  type HealthCheck,
  healthRoutes,
  Listener,
  type ListenerOptions,
  loopbackGate,
  type Route,
} from '../../server/index.ts';
import { ManifestReader } from '../../sources/index.ts';
import { portFile, tokenFile } from '../data-directory/data-directory.ts';
import { HealthListener } from './health-listener.ts';
import { credentialHost, realMachine } from './kubelet-settings.ts';
import { nodeRoutes } from './node-routes.ts';
import { collectGarbage, processCpuMs, reclaimMemory } from './reclaim-memory.ts';

export interface NodeOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The registry served under /metrics; the CRI client may register its metrics here too. */
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly settings: KubeletSettings;
  /** The connection of the node to its cluster; undefined without one. */
  readonly cluster?: Pick<ClusterNode, 'link' | 'hint'> | undefined;
  /** The name that the runtime reports, which is the scheme of container IDs. */
  readonly runtimeName: string;
  /** Called after each runtime check with its error, or undefined for success. */
  readonly runtimeObserved?: ((error: unknown) => void) | undefined;
  /** The loopback port; 0 for any free port, which commands find through the port file. */
  readonly port: number;
  /** The ports of listeners that open later; they must not be taken by the loopback listener. */
  readonly laterPorts?: readonly number[] | undefined;
  /**
   * The directory whose Docker config file is used for image pulls, as the Go kubelet uses its
   * working directory; none by default.
   */
  readonly workingDir?: string | undefined;
  /** The port of the health listener; 0 for none. */
  readonly healthzPort: number;
  /** The address of the health listener; loopback by default. */
  readonly healthzAddress?: string | undefined;
  /**
   * With `take-another`, a main port in use is replaced by another one, and the node runs without
   * the health listener if its port is in use. With `fail`, a main port in use fails the start, and
   * the health listener retries its port.
   */
  readonly whenPortInUse: 'fail' | 'take-another';
  /** The idle timeout of exec, attach and port-forward; 0 for none. */
  readonly streamingIdleMs: number;
  /** Health checks of /livez in addition to those of the kubelet. */
  readonly vitalChecks?: readonly HealthCheck[] | undefined;
  /** Health checks of /readyz in addition to those of the kubelet. */
  readonly readyChecks?: readonly HealthCheck[] | undefined;
}

/** A kubelet with its servers that is ready to run. */
export interface Node {
  readonly kubelet: Kubelet;
  /** The loopback port of the kubelet. */
  readonly port: number;
  run(signal: AbortSignal): Promise<void>;
}

const loopback = '127.0.0.1';
const endWithinMs = 5_000;

export async function openNode(options: NodeOptions): Promise<Node> {
  const { clock, logger, metrics, cri, settings } = options;
  const listening = new ListeningPorts(settings.runtimeSocket);
  const kubelet = await createKubelet(options, () => listening.ports);
  const { live, ready } = kubelet.endpoints.health;
  const { vitalChecks = [], readyChecks = [] } = options;
  const health = healthRoutes([...live, ...vitalChecks], [...ready, ...readyChecks]);
  const token = await createToken(settings.rootDir);
  const { routes, upgrades } = nodeRoutes({
    clock,
    kubelet: kubelet.endpoints,
    metrics,
    cri,
    podLogsDir: settings.podLogsDir,
    splitStreams: settings.isGateEnabled('PodLogsQuerySplitStreams') ? 'on' : 'off',
    streamingIdleMs: options.streamingIdleMs,
  });
  const names = [settings.nodeName];
  const gate = loopbackGate({ token, open: health, names });
  const main = await listen(options, { routes: [...health, ...routes], upgrades, gate });
  await listening.refresh();
  const writePort = () => writeFileAtomic(portFile(settings.rootDir), `${main.port}\n`, { mode: 0o600 });
  const healthz = await writePort()
    .then(() => listenForHealth(options, health))
    .catch(async (error) => {
      await main.close();
      throw error;
    });
  return {
    kubelet,
    port: main.port,
    async run(signal) {
      const ended = new LinkedController(signal);
      const watching = listening.watch(clock, ended.signal);
      const warming = warmUp(settings);
      const tidying = reclaimMemory({ clock, cpuMs: processCpuMs, collect: collectGarbage }, ended.signal);
      try {
        await endsInTime(kubelet.run(signal), clock, logger, signal);
      } finally {
        ended.abort(new KubelingError('CANCELLED', 'The node has stopped'));
        ended[Symbol.dispose]();
        await Promise.all([tidying, warming, watching]);
        await main.close();
        await healthz?.close();
      }
    },
  };
}

function createKubelet(
  { clock, random, logger, metrics, cri, settings, cluster, runtimeName, ...options }: NodeOptions,
  nodePorts: NonNullable<KubeletSettings['nodePorts']>,
): Promise<Kubelet> {
  const { runtimeObserved = () => {} } = options;
  const deps = {
    clock,
    random,
    logger,
    metrics,
    cri,
    machine: realMachine(),
    credentialHost: credentialHost(clock, options.workingDir),
    runtimeChecked: (error: unknown) => {
      runtimeObserved(error);
      cluster?.hint();
    },
    cluster: cluster?.link,
  };
  return Kubelet.create({ ...settings, nodePorts }, deps, runtimeName);
}

/**
 * Creates the loopback token, which is new at each start, in a file that only its owner can read.
 */
async function createToken(rootDir: string): Promise<string> {
  const token = randomBytes(32).toString('hex');
  await mkdir(rootDir, { recursive: true, mode: 0o750 });
  await writeFileAtomic(tokenFile(rootDir), `${token}\n`, { mode: 0o600 });
  return token;
}

/**
 * Waits for the work to end, but only for a limited time after the abort: all state is on disk and
 * in the runtime, so nothing is lost, and a process that does not exit would block its successor.
 */
function endsInTime(work: Promise<void>, clock: Clock, logger: Logger, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    const link = onAbort(signal, () => {
      timer = clock.timer(endWithinMs, () => {
        logger.error('Kubelet does not stop in time', undefined);
        resolve();
      });
    });
    work.then(resolve, reject).finally(() => {
      link[Symbol.dispose]();
      timer?.cancel();
    });
  });
}

async function listen(
  options: NodeOptions,
  served: Pick<ListenerOptions, 'routes' | 'upgrades' | 'gate'>,
): Promise<Listener> {
  const { port, whenPortInUse, logger, settings } = options;
  if (port !== 0 && whenPortInUse === 'fail')
    return await Listener.open({ host: loopback, port, ...served, logger });
  // Prefers the port of the previous run, which no running pod uses as a host port; a new random
  // port may be the host port of a pod.
  const last = await lastPort(settings.rootDir);
  const { laterPorts = [], healthzPort } = options;
  for (const each of [port, [...laterPorts, healthzPort].includes(last) ? 0 : last]) {
    if (each === 0) continue;
    try {
      return await Listener.open({ host: loopback, port: each, ...served, logger });
    } catch (error) {
      if (!isKind(error, 'Unavailable')) throw error;
    }
  }
  return await Listener.open({ host: loopback, port: 0, ...served, logger });
}

async function lastPort(rootDir: string): Promise<number> {
  const port = Number(await readFileIfExists(portFile(rootDir)).catch(() => undefined));
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : 0;
}

async function listenForHealth(
  options: NodeOptions,
  routes: readonly Route[],
): Promise<HealthListener | undefined> {
  const { healthzPort: port, healthzAddress: host = loopback, logger, clock, whenPortInUse } = options;
  if (port === 0) return undefined;
  const names = [options.settings.nodeName];
  const whenPortBusy = whenPortInUse === 'fail' ? 'retry' : 'do-without';
  return await HealthListener.open({ host, port, routes, names, logger, clock, whenPortInUse: whenPortBusy });
}

const warmUpPod = `
apiVersion: v1
kind: Pod
metadata:
  name: nobody
spec:
  containers:
    - name: main
      image: none
      command: [sh, -c, "true"]
`;

/**
 * Loads the manifest reader by reading a dummy manifest, so that the first pod starts without that
 * delay.
 */
export async function warmUp(
  settings: Pick<KubeletSettings, 'staticPodPath' | 'nodeName' | 'isGateEnabled'>,
): Promise<void> {
  const { staticPodPath, nodeName, isGateEnabled: enabled } = settings;
  if (staticPodPath === '') return;
  const reader = new ManifestReader({ enabled, apiReferences: 'refused' });
  await reader.read(Buffer.from(warmUpPod), { source: 'file', path: staticPodPath, nodeName });
}
