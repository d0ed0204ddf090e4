import { bareImageName } from '../../../pods/index.ts';

/** Which of the images that are here a pod may use without showing that it could pull them. */
export type VerificationPolicy =
  | { readonly kind: 'NeverVerify' }
  | { readonly kind: 'NeverVerifyPreloadedImages' }
  | { readonly kind: 'NeverVerifyAllowlistedImages'; readonly allowlist: readonly string[] }
  | { readonly kind: 'AlwaysVerify' };

export type ImageOrigin =
  /** A kubelet of this node pulled it, or began to. */
  'pulled-here' | 'preloaded';

export function mustVerify(policy: VerificationPolicy, image: string, origin: ImageOrigin): boolean {
  switch (policy.kind) {
    case 'NeverVerify':
      return false;
    case 'AlwaysVerify':
      return true;
    case 'NeverVerifyPreloadedImages':
      return origin === 'pulled-here';
    case 'NeverVerifyAllowlistedImages':
      return !policy.allowlist.some((pattern) => isListed(pattern, bareImageName(image)));
  }
}

function isListed(pattern: string, name: string): boolean {
  return pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}
