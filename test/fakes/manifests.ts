import { collectLogs, realClock } from '../../src/lib/index.ts';
import type { PodRules } from '../../src/pods/index.ts';
import { ManifestReader, type ManifestReading } from '../../src/sources/index.ts';

/** Feature gates that are off by default in the Kubernetes release that kubeling follows. */
const offGates = new Set(['TaintTolerationComparisonOperators', 'UserNamespacesHostNetworkSupport']);

export const defaultRules: PodRules = {
  enabled: (gate) => !offGates.has(gate),
  apiReferences: 'refused',
};

/**
 * Returns the YAML manifest of a small pod; `more` is added to its spec and must be indented by
 * two.
 */
export function podManifest(name: string, image = 'busybox:1', more = ''): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  containers:
  - name: main
    image: ${image}
${more}`;
}

export function readManifestText(text: string, rules: PodRules = defaultRules): Promise<ManifestReading> {
  return new ManifestReader(rules).read(Buffer.from(text), {
    source: 'file',
    path: '/manifests/web.yaml',
    nodeName: 'node-a',
  });
}

export function quietLogger() {
  return collectLogs(realClock()).logger;
}
