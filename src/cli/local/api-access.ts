/** What the kubelet needs to join the API of its own process as it would join any other. */
export interface ApiAccess {
  readonly nodeKubeconfig: string;
  /** Whom the kubelet's server believes. */
  readonly clientCaFile: string;
  /** Tells it where the kubelet of its node answers. */
  kubeletAnswersAt(port: number): void;
}
