import { dnsSubdomain } from '../../pods/validation/index.ts';
import type { AccessAuthorizer, CertificateSigner, TokenIssuer } from '../api/auth-types.ts';
import type { ResourceStrategy, ResourceView } from '../api/index.ts';
import { type ControllerDeps, type Controllers, createControllers } from '../controllers/index.ts';
import { validatorFor } from '../validation/metadata.ts';
import { priorityClassStrategy, runtimeClassStrategy } from './classes.ts';
import { configMapStrategy, secretStrategy } from './config-data.ts';
import { endpointsStrategy } from './endpoints.ts';
import { eventStrategy, eventsView } from './events.ts';
import { ForcedNamespaceDeletions, namespaceStrategy } from './namespaces.ts';
import { nodeStrategy } from './nodes.ts';
import {
  leaseStrategy,
  limitRangeStrategy,
  podDisruptionBudgetStrategy,
  resourceQuotaStrategy,
} from './policies.ts';
import {
  localSubjectAccessReviewStrategy,
  selfSubjectAccessReviewStrategy,
  selfSubjectReviewStrategy,
  selfSubjectRulesReviewStrategy,
  subjectAccessReviewStrategy,
  tokenReviewStrategy,
} from './reviews.ts';
import { ClusterIpRange, serviceStrategy } from './services.ts';
import { signingRequestStrategy } from './signing-requests.ts';
import {
  csiDriverStrategy,
  csiNodeStrategy,
  storageClassStrategy,
  volumeAttachmentStrategy,
} from './storage-kinds.ts';
import { issueToken } from './token-requests.ts';
import { persistentVolumeClaimStrategy } from './volume-claims.ts';
import { persistentVolumeStrategy } from './volumes.ts';

export interface KindDeps {
  readonly signer: CertificateSigner;
  readonly tokens: TokenIssuer;
  readonly authorizer: AccessAuthorizer;
  /** The service CIDR, such as 10.96.0.0/16. */
  readonly serviceRange: string;
}

export interface Kinds {
  /** The strategies by plural. */
  readonly strategies: Readonly<Record<string, ResourceStrategy>>;
  /** The views by plural and group. */
  readonly views: Readonly<Record<string, ResourceView>>;
  /** Creates the controllers of the server that uses these strategies. */
  readonly createControllers: (needs: Omit<ControllerDeps, 'forcedDeletions' | 'signer'>) => Controllers;
}

export function createKinds(needs: KindDeps): Kinds {
  const forced = new ForcedNamespaceDeletions();
  const { signer: signing } = needs;
  return {
    strategies: kindStrategies({ ...needs, forcedDeletions: forced }),
    views: kindViews,
    createControllers: (more) => createControllers({ ...more, forcedDeletions: forced, signer: signing }),
  };
}

export interface KindStrategyDeps extends KindDeps {
  /** The UIDs of namespaces whose deletion is forced, shared with the controllers. */
  readonly forcedDeletions: ForcedNamespaceDeletions;
}

/** The strategies of all kinds except pods, by plural. */
function kindStrategies(needs: KindStrategyDeps): Readonly<Record<string, ResourceStrategy>> {
  const { signer, tokens, authorizer } = needs;
  return {
    nodes: nodeStrategy,
    namespaces: namespaceStrategy(needs.forcedDeletions),
    configmaps: configMapStrategy,
    secrets: secretStrategy,
    serviceaccounts: { validate: validatorFor(dnsSubdomain), handlers: { token: issueToken(tokens) } },
    services: serviceStrategy(new ClusterIpRange(needs.serviceRange)),
    endpoints: endpointsStrategy,
    events: eventStrategy,
    persistentvolumes: persistentVolumeStrategy,
    persistentvolumeclaims: persistentVolumeClaimStrategy,
    leases: leaseStrategy,
    certificatesigningrequests: signingRequestStrategy(signer),
    csinodes: csiNodeStrategy,
    csidrivers: csiDriverStrategy,
    storageclasses: storageClassStrategy,
    volumeattachments: volumeAttachmentStrategy,
    runtimeclasses: runtimeClassStrategy,
    priorityclasses: priorityClassStrategy,
    tokenreviews: tokenReviewStrategy(tokens),
    selfsubjectreviews: selfSubjectReviewStrategy(),
    selfsubjectaccessreviews: selfSubjectAccessReviewStrategy(authorizer),
    selfsubjectrulesreviews: selfSubjectRulesReviewStrategy(authorizer),
    subjectaccessreviews: subjectAccessReviewStrategy(authorizer),
    localsubjectaccessreviews: localSubjectAccessReviewStrategy(authorizer),
    resourcequotas: resourceQuotaStrategy,
    limitranges: limitRangeStrategy,
    poddisruptionbudgets: podDisruptionBudgetStrategy,
  };
}

/** The resources that present objects of other resources, by plural and group. */
const kindViews: Readonly<Record<string, ResourceView>> = { 'events.events.k8s.io': eventsView };
