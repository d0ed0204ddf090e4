import { dnsSubdomain } from '../../pods/validation/index.ts';
import type { AccessJudge, SigningDesk, TokenDesk } from '../api/auth-types.ts';
import type { KindRules, ResourceView } from '../api/index.ts';
import { type KindLoops, kindLoops, type LoopNeeds } from '../controllers/index.ts';
import { validated } from '../validation/metadata.ts';
import { priorityClassRules, runtimeClassRules } from './classes.ts';
import { configMapRules, secretRules } from './config-data.ts';
import { endpointsRules } from './endpoints.ts';
import { eventRules, eventsView } from './events.ts';
import { ForcedEnds, namespaceRules } from './namespaces.ts';
import { nodeRules } from './nodes.ts';
import { leaseRules, limitRangeRules, podDisruptionBudgetRules, resourceQuotaRules } from './policies.ts';
import {
  localSubjectAccessReviewRules,
  selfSubjectAccessReviewRules,
  selfSubjectReviewRules,
  selfSubjectRulesReviewRules,
  subjectAccessReviewRules,
  tokenReviewRules,
} from './reviews.ts';
import { ServiceRange, serviceRules } from './services.ts';
import { signingRequestRules } from './signing-requests.ts';
import { csiDriverRules, csiNodeRules, storageClassRules, volumeAttachmentRules } from './storage-kinds.ts';
import { tokenAct } from './token-requests.ts';
import { persistentVolumeClaimRules } from './volume-claims.ts';
import { persistentVolumeRules } from './volumes.ts';

export interface KindNeeds {
  readonly signing: SigningDesk;
  readonly tokens: TokenDesk;
  readonly judge: AccessJudge;
  /** Where services get their addresses from, such as 10.96.0.0/16. */
  readonly serviceRange: string;
}

export interface Kinds {
  /** By plural. */
  readonly rules: Readonly<Record<string, KindRules>>;
  /** By plural and group. */
  readonly views: Readonly<Record<string, ResourceView>>;
  /** For the world that was made of the rules. */
  readonly loops: (needs: Omit<LoopNeeds, 'forced' | 'signing'>) => KindLoops;
}

export function makeKinds(needs: KindNeeds): Kinds {
  const forced = new ForcedEnds();
  const { signing } = needs;
  return {
    rules: kindRules({ ...needs, forced }),
    views: kindViews,
    loops: (more) => kindLoops({ ...more, forced, signing }),
  };
}

/** What rules need besides what makes kinds. */
export interface RuleNeeds extends KindNeeds {
  /** Shared with the loops. */
  readonly forced: ForcedEnds;
}

/** The rules of all kinds but pods, by plural. */
export function kindRules(needs: RuleNeeds): Readonly<Record<string, KindRules>> {
  const { signing, tokens, judge } = needs;
  return {
    nodes: nodeRules,
    namespaces: namespaceRules(needs.forced),
    configmaps: configMapRules,
    secrets: secretRules,
    serviceaccounts: { validate: validated(dnsSubdomain), act: { token: tokenAct(tokens) } },
    services: serviceRules(new ServiceRange(needs.serviceRange)),
    endpoints: endpointsRules,
    events: eventRules,
    persistentvolumes: persistentVolumeRules,
    persistentvolumeclaims: persistentVolumeClaimRules,
    leases: leaseRules,
    certificatesigningrequests: signingRequestRules(signing),
    csinodes: csiNodeRules,
    csidrivers: csiDriverRules,
    storageclasses: storageClassRules,
    volumeattachments: volumeAttachmentRules,
    runtimeclasses: runtimeClassRules,
    priorityclasses: priorityClassRules,
    tokenreviews: tokenReviewRules(tokens),
    selfsubjectreviews: selfSubjectReviewRules(),
    selfsubjectaccessreviews: selfSubjectAccessReviewRules(judge),
    selfsubjectrulesreviews: selfSubjectRulesReviewRules(judge),
    subjectaccessreviews: subjectAccessReviewRules(judge),
    localsubjectaccessreviews: localSubjectAccessReviewRules(judge),
    resourcequotas: resourceQuotaRules,
    limitranges: limitRangeRules,
    poddisruptionbudgets: podDisruptionBudgetRules,
  };
}

/** Resources that show objects of others, by plural and group. */
export const kindViews: Readonly<Record<string, ResourceView>> = { 'events.events.k8s.io': eventsView };
