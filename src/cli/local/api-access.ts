/** What the kubelet needs to join the API of its own process as it would join any other. */
export interface ApiAccess {
  readonly nodeKubeconfig: string;
  /** Whom the kubelet's server believes. */
  readonly clientCaFile: string;
  /** Where the kubelet is to be reached. */
  readonly kubeletPort: number;
}
