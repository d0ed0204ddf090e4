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
  /** The metrics under /metrics; the CRI client may count its calls here too. */
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly settings: KubeletSettings;
  /** The cluster of the node; undefined without one. */
  readonly cluster?: Pick<ClusterNode, 'link' | 'hint'> | undefined;
  /** The name the runtime reports: the scheme of container IDs. */
  readonly runtimeName: string;
  /** Called after each runtime check with the error, or undefined. */
  readonly runtimeObserved?: ((error: unknown) => void) | undefined;
  /** 0 for any free port: commands find it through the port file. */
  readonly port: number;
  /** Ports of listeners that open later: the last loopback port is not used again if it is one of them. */
  readonly laterPorts?: readonly number[] | undefined;
  /** Directory whose docker config is used, as the Go kubelet uses the current one; none unless given. */
  readonly workingDir?: string | undefined;
  /** 0 for none. */
  readonly healthzPort: number;
  /** Loopback by default. */
  readonly healthzAddress?: string | undefined;
  /**
   * Whether to use another port when the requested one is in use, and to run without the health
   * listener; otherwise the start fails and the health listener retries.
   */
  readonly whenPortInUse: 'fail' | 'take-another';
  /** Idle timeout of exec, attach and port-forward; 0 for none. */
  readonly streamingIdleMs: number;
  /** Further checks of /livez, besides the kubelet's own. */
  readonly vitalChecks?: readonly HealthCheck[] | undefined;
  /** Further checks of /readyz. */
  readonly readyChecks?: readonly HealthCheck[] | undefined;
}

/** A kubelet with its servers, ready to run. */
export interface Node {
  readonly kubelet: Kubelet;
  /** Its loopback port. */
  readonly port: number;
  run(signal: AbortSignal): Promise<void>;
}

const loopback = '127.0.0.1';
const endWithinMs = 5_000;

export async function openNode(options: NodeOptions): Promise<Node> {
  const { clock, random, logger, metrics, cri, settings, cluster, runtimeObserved = () => {} } = options;
  const listening = new ListeningPorts(settings.runtimeSocket);
  const kubelet = await Kubelet.create(
    { ...settings, nodePorts: () => listening.ports },
    {
      clock,
      random,
      logger,
      metrics,
      cri,
      machine: realMachine(),
      credentialHost: credentialHost(clock, options.workingDir),
      runtimeChecked: (error) => {
        runtimeObserved(error);
        cluster?.hint();
      },
      cluster: cluster?.link,
    },
    options.runtimeName,
  );
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

/** Created at each start, in a file that only its owner can read. */
async function createToken(rootDir: string): Promise<string> {
  const token = randomBytes(32).toString('hex');
  await mkdir(rootDir, { recursive: true, mode: 0o750 });
  await writeFileAtomic(tokenFile(rootDir), `${token}\n`, { mode: 0o600 });
  return token;
}

/**
 * Waits for the work, at most for a while after the abort. Nothing is lost then, because all state
 * is on disk and in the runtime, and a process that does not exit would block the next one.
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
  // No pod was admitted with the last port as its host port, but a new random port might be one.
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
 * Loads the manifest reader by reading a dummy manifest, so that the first pod does not wait for
 * it.
 */
export async function warmUp(
  settings: Pick<KubeletSettings, 'staticPodPath' | 'nodeName' | 'isGateEnabled'>,
): Promise<void> {
  const { staticPodPath, nodeName, isGateEnabled: enabled } = settings;
  if (staticPodPath === '') return;
  const reader = new ManifestReader({ enabled, apiReferences: 'refused' });
  await reader.read(Buffer.from(warmUpPod), { source: 'file', path: staticPodPath, nodeName });
}
