import type { StatusContext } from '../../src/status/index.ts';

/** A node on which nothing is special, with what a test cares about put over it. */
export function aStatusContext(over: Partial<StatusContext> = {}): StatusContext {
  return {
    previous: {},
    isTerminal: false,
    hasUsableSandbox: true,
    startError: () => undefined,
    probes: { startup: () => undefined, readiness: () => undefined },
    nodeIps: ['192.0.2.1'],
    ...over,
  };
}
