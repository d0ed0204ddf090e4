import type { CertificateWish, KeyPair } from '../fakes/certificate-authority.ts';
import type { Credential } from './cluster-certificates.ts';

/** What is behind a control plane: processes of its own that can be ended and started again, and whom they believe. */
export interface PlaneBackend extends AsyncDisposable {
  readonly kind: 'real' | 'embedded';
  readonly serverUrl: string;
  /** The authority that vouches for everybody, in PEM and as a file. */
  readonly ca: string;
  readonly caFile: string;
  readonly admin: KeyPair;
  readonly adminKubeconfig: string;
  /** The path of the program. */
  readonly kubectl: string;
  /** Where its logs are, and room for files of the test. */
  readonly folder: string;
  /** What a node must have in its configuration to be reached by it. */
  readonly nodeConfig: object;
  issue(options: CertificateWish): KeyPair;
  /** With which a node of this name may ask for its first certificate, and gets it. */
  firstCredential(nodeName: string): Promise<Credential>;
  /** Everything else goes on and waits for it. */
  stopApiServer(how: NodeJS.Signals): Promise<void>;
  /** At the same address with the same data; waits until it is ready. */
  startApiServer(): Promise<void>;
  /** How long certificates hold that it signs from now on, as Go writes durations. */
  signFor(duration: string): Promise<void>;
  /** What happened so far cannot be watched any more. */
  forgetHistory(): Promise<void>;
}
