/**
 * Features that a node must declare before pods and clients use them, each with its own feature
 * gate.
 */
const featureGates = [
  'ExtendWebSocketsToKubelet',
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
  'RestartAllContainersOnContainerExits',
];

/** The features that the node declares; undefined if the gate for declarations is disabled. */
export function declaredFeatures(isGateEnabled: (gate: string) => boolean): readonly string[] | undefined {
  return isGateEnabled('NodeDeclaredFeatures')
    ? featureGates.filter((gate) => isGateEnabled(gate))
    : undefined;
}
