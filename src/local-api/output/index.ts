export {
  type PublicAnswer,
  type PublicRoutes,
  type PublicRoutesOptions,
  publicPages,
  publicRoutes,
  type VersionFacts,
  type VersionSources,
  versionFacts,
} from './public-routes.ts';
export { ageOf, shortDuration } from './tables/column.ts';
export { asPartial, asTable, type TableWish } from './tables/table.ts';
