import type { StatusContext } from '../../src/status/index.ts';

/**
 * Builds the status context of a node with default properties and the fields that a test overrides.
 */
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
