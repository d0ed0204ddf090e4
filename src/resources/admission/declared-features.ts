/** What a pod or a client may rely on only where the node says that it can do it, each behind its feature gate. */
const abilities = [
  'ExtendWebSocketsToKubelet',
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
  'RestartAllContainersOnContainerExits',
];

/** As the node tells the scheduler and the API server; undefined where it is not to tell. */
export function declaredFeatures(isGateEnabled: (gate: string) => boolean): readonly string[] | undefined {
  return isGateEnabled('NodeDeclaredFeatures') ? abilities.filter((gate) => isGateEnabled(gate)) : undefined;
}
