import type { CriClient } from '../cri/index.ts';
import { Kubelet, type KubeletSettings } from '../kubelet/index.ts';
import {
  type Clock,
  describeError,
  isKind,
  type Logger,
  type MetricRegistry,
  onAbort,
  type Random,
  type Timer,
} from '../lib/index.ts';
import { healthRoutes, kubeletRoutes, Listener, type Route } from '../server/index.ts';
import { describeProblem } from '../sources/index.ts';
import { realMachine } from './kubelet-settings.ts';

export interface NodeOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What is served under /metrics; whoever made the CRI client may count its calls here too. */
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly settings: KubeletSettings;
  /** How the runtime calls itself: the scheme of container ids. */
  readonly runtimeName: string;
  /** Told each time the runtime was asked how it is: what went wrong, or undefined. */
  readonly runtimeLooked?: ((error: unknown) => void) | undefined;
  readonly port: number;
  /** 0 for none. */
  readonly healthzPort: number;
  /** Whether to take any other port when the one asked for is taken. */
  readonly portTaken: 'fail' | 'take-another';
}

/** A kubelet with its servers, ready to run. */
export interface Node {
  readonly kubelet: Kubelet;
  /** Where it answers on loopback. */
  readonly port: number;
  run(signal: AbortSignal): Promise<void>;
}

const loopback = '127.0.0.1';
const endWithinMs = 5_000;

export async function openNode(options: NodeOptions): Promise<Node> {
  const { clock, random, logger, metrics, cri, settings, runtimeLooked = () => {} } = options;
  const kubelet = await Kubelet.create(
    settings,
    { clock, random, logger, metrics, cri, machine: realMachine(), runtimeLooked },
    options.runtimeName,
  );
  const { live, ready } = kubelet.health;
  const health = healthRoutes(live, ready);
  const view = {
    pods: () => kubelet.podsWithStatus(),
    runningPods: (signal: AbortSignal) => kubelet.running.get(signal),
    flights: (key: string | undefined) => ({
      ...(key === undefined ? { node: kubelet.node.story() } : {}),
      pods: key === undefined ? kubelet.flights.all() : kubelet.flights.find(key),
      problems: (key === undefined ? kubelet.sourceProblems() : kubelet.sourceProblemsOf(key)).map(
        describeProblem,
      ),
    }),
  };
  const main = await listen(options, [...health, ...kubeletRoutes(view, metrics)]);
  const healthz = await listenForHealth(options, health).catch(async (error) => {
    await main.close();
    throw error;
  });
  return {
    kubelet,
    port: main.port,
    async run(signal) {
      try {
        await endsInTime(kubelet.run(signal), clock, logger, signal);
      } finally {
        await main.close();
        await healthz?.close();
      }
    },
  };
}

/**
 * The work, or a while after it was told to end: nothing is lost by not waiting for what hangs, as all state is on disk
 * and in the runtime, and a process that does not end would keep the next one from starting.
 */
function endsInTime(work: Promise<void>, clock: Clock, logger: Logger, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    const link = onAbort(signal, () => {
      timer = clock.timer(endWithinMs, () => {
        logger.error('The kubelet does not end in time', undefined);
        resolve();
      });
    });
    work.then(resolve, reject).finally(() => {
      link[Symbol.dispose]();
      timer?.cancel();
    });
  });
}

async function listen({ port, portTaken, logger }: NodeOptions, routes: readonly Route[]): Promise<Listener> {
  try {
    return await Listener.open({ host: loopback, port, routes, logger });
  } catch (error) {
    if (portTaken === 'fail' || !isKind(error, 'Unavailable')) throw error;
    return await Listener.open({ host: loopback, port: 0, routes, logger });
  }
}

async function listenForHealth(
  options: NodeOptions,
  routes: readonly Route[],
): Promise<Listener | undefined> {
  const { healthzPort, logger, portTaken } = options;
  if (healthzPort === 0) return undefined;
  try {
    return await Listener.open({ host: loopback, port: healthzPort, routes, logger });
  } catch (error) {
    if (portTaken === 'fail') throw error;
    logger.warn('Health is served on the main port only', {
      port: healthzPort,
      because: describeError(error),
    });
    return undefined;
  }
}
