import type { CSIDriver, Secret, VolumeAttachment } from '../../kinds/index.ts';
import type { TokenSource } from '../../objects/index.ts';
import type { ClaimApi } from '../claims/expansions.ts';

/** What the API says of drivers and volumes; undefined for what is not there. */
export interface CsiApi extends ClaimApi {
  driver(name: string, signal: AbortSignal): Promise<CSIDriver | undefined>;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Whether the status of this node lists the volume among those that are attached, and among those in use. */
  isListed(volume: string, signal: AbortSignal): Promise<boolean>;
  /** The volumes that the status of this node was last known to list, attached or in use. */
  listed(): readonly string[];
  readonly tokens: Pick<TokenSource, 'get'>;
}
