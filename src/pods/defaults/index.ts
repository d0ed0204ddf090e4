import type { PodSpec, Pod as WrittenPod } from '../../kinds/index.ts';
import type { FeatureGate } from '../rules.ts';
import {
  podLevelDefaults,
  roundedToMilli,
  withContainerDefaults,
  withHostPorts,
  withRequests,
  withRoundedAmounts,
} from './containers.ts';
import { withVolumeDefaults } from './volumes.ts';

/**
 * Sets all defaults that the API server sets. Idempotent. Quantities in the pod must be in
 * canonical spelling, as decoding leaves them.
 */
export function withPodDefaults(
  pod: WrittenPod,
  enabled: FeatureGate,
): WrittenPod & { readonly spec: PodSpec } {
  const spec = withResourceDefaults(pod.spec ?? { containers: [] }, enabled);
  return { ...pod, spec: withSpecDefaults(withNetworkDefaults(spec)) };
}

/** Requests are set first, because later defaults sum them up. */
function withResourceDefaults(spec: PodSpec, enabled: FeatureGate): PodSpec {
  const filled: PodSpec = {
    ...spec,
    containers: spec.containers.map(withRequests),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withRequests) }),
  };
  const resources = enabled('PodLevelResources') ? podLevelDefaults(filled) : filled.resources;
  return resources === undefined ? filled : { ...filled, resources: withRoundedAmounts(resources) };
}

function withNetworkDefaults(spec: PodSpec): PodSpec {
  if (spec.hostNetwork !== true) return spec;
  return {
    ...spec,
    containers: spec.containers.map(withHostPorts),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withHostPorts) }),
  };
}

function withSpecDefaults(spec: PodSpec): PodSpec {
  const account = spec.serviceAccountName || spec.serviceAccount;
  const overhead = roundedToMilli(spec.overhead);
  return {
    ...spec,
    containers: spec.containers.map(withContainerDefaults),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withContainerDefaults) }),
    ...(spec.ephemeralContainers && {
      ephemeralContainers: spec.ephemeralContainers.map(withContainerDefaults),
    }),
    ...(spec.volumes && { volumes: spec.volumes.map(withVolumeDefaults) }),
    ...(overhead && { overhead }),
    // The deprecated field serviceAccount is set for clients that still read it.
    ...(account && { serviceAccountName: account, serviceAccount: account }),
    dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
    restartPolicy: spec.restartPolicy || 'Always',
    securityContext: spec.securityContext ?? {},
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    schedulerName: spec.schedulerName || 'default-scheduler',
    enableServiceLinks: spec.enableServiceLinks ?? true,
  };
}
