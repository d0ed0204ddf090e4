import type { CertificateWish, KeyPair } from '../fakes/certificate-authority.ts';
import type { Credential } from './cluster-certificates.ts';

/**
 * The implementation of a control plane: its processes, which can be stopped and started again, and
 * its CA.
 */
export interface PlaneBackend extends AsyncDisposable {
  readonly kind: 'real' | 'embedded';
  readonly serverUrl: string;
  /** The CA certificate of the cluster, in PEM and as a file. */
  readonly ca: string;
  readonly caFile: string;
  readonly admin: KeyPair;
  readonly adminKubeconfig: string;
  /** The path of kubectl. */
  readonly kubectl: string;
  /** The directory of the logs and of files of the test. */
  readonly folder: string;
  /** The fields that a node's configuration requires so that the API server can connect to it. */
  readonly nodeConfig: object;
  issue(options: CertificateWish): KeyPair;
  /**
   * Returns the credential with which a node of this name requests its first certificate; the
   * request is approved.
   */
  firstCredential(nodeName: string): Promise<Credential>;
  /** Stops the API server; the other components keep running and wait for it. */
  stopApiServer(how: NodeJS.Signals): Promise<void>;
  /** Starts the API server at the same address with the same data, and waits until it is ready. */
  startApiServer(): Promise<void>;
  /** Sets the validity of certificates that the cluster signs from now on, as a Go duration. */
  signFor(duration: string): Promise<void>;
  /** Compacts the history, so that earlier versions cannot be watched any more. */
  forgetHistory(): Promise<void>;
}
